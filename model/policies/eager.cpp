// PyTorch eager: library kernels for GEMM (bias in its epilogue), norm and attention; RoPE, SiLU
// and multiply as framework primitives. Checked against the kernels that PyTorch 2.11 launches.
#include "model/implementation.h"
#include "model/policies/rules.h"
#include "model/rewrites/decompose_rope.h"
#include "model/rewrites/decompose_swiglu.h"

namespace fuseline {

PolicyRules eager_policy() {
  return {.info = {"eager", "PyTorch eager, library norm kernel",
                   "attention; norm is one kernel; RoPE 5 per tensor; SiLU and multiply separate"},
          .rewrites = {decompose_rope(), decompose_swiglu()},
          .fuse = bias_into_gemm,
          .siblings = {},
          .implement = framework_implementation};
}

}  // namespace fuseline
