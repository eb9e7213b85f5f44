// The graphs among which a search chooses: a block after each list of rewrites.
#pragma once

#include <string>
#include <vector>

#include "model/plan.h"

namespace fuseline {

// A block after some rewrites, in the order of their names.
struct RewrittenBlock {
  Graph graph;
  Preparation preparation;
  std::vector<std::string> rewrites;
};

// Every combination of the rewrites by which plans of our own kernels fuse more, where they apply:
//   forward, decode   merge_rope, join_in_epilogues, split_norm, the entry norm's work in the block
//                     before, interleave_heads, interleave_gate_up
//   train             merge_rope, interleaving, what is computed again in the backward pass,
//                     split_norm_keeping_weight, defer_norm_backward, split_column_sums, the entry
//                     norm's work in the block before; split_cross_entropy always
// A gradient of queries is always summed in fp32 (accumulate_dq): thread blocks of all key tiles
// add to it, and no kernel could do that in the result's own type. What decomposes an operator into
// a framework's primitives is left out. No two have the same names. `block`: as it is given.
std::vector<RewrittenBlock> rewritten_blocks(const Graph& block, bool chains = false);

// The graph of a policy's plan, as one of them.
RewrittenBlock rewritten_like(const Plan& plan);

}  // namespace fuseline
