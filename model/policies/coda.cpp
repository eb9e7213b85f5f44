// CODA (arXiv 2605.19269): everything but attention's core is a GEMM-epilogue program. Norms are
// split into partial statistics, a finisher and a deferred scale; pairs are interleaved; the entry
// norm's statistics come from the previous block.
#include "model/implementation.h"
#include "model/policies/rules.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/split_norm.h"

namespace fuseline {

PolicyRules coda_policy() {
  return {.info = {"coda", "CODA", "everything but attention as GEMM-epilogue programs"},
          .rewrites = {merge_rope(), split_norm(), rotate_statistics(), interleave_heads(),
                       interleave_gate_up()},
          .fuse = epilogue_programs,
          .siblings = {},
          .implement = hand_written_implementation};
}

}  // namespace fuseline
