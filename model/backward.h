// Reverse mode: from a block's forward graph to the joint graph of its forward and backward pass.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "model/graph.h"

namespace fuseline {

struct BackwardOptions {
  // Forward activations that the backward pass computes again instead of reading what the forward
  // pass stored: "act" becomes "re_act", made by the forward operator or what is cheaper: SwiGLU's
  // gradient gives its output too, a norm is applied with its saved statistics.
  std::vector<std::string> recompute{};
  // The forward pass saves the log-sum-exp [B·H·T, 1] of every row of scores in fp32; scores and
  // probabilities are computed again from it, and the gradient's row sum is that of dY·Y.
  bool save_log_sum_exp = false;
  // Gradients of the slices of one tensor (Q, K and V of qkv) are tensors of their own that a
  // concat puts side by side, as frameworks do. Otherwise each goes to its columns directly.
  bool concatenate_slices = false;
};

// The forward operators followed by the backward ones (Pass::backward), in dependency order. Every
// output y of the graph gets an input "dy"; every input and weight a gradient of role output: "dx",
// "dw_down". An activation's gradient is "d" and its name. Operators: "d_down" (gradient of the
// activation), "dw_down" (of the weight), "db_qkv" (of the bias), "add_dh" (sum over the readers of
// h); sites as in the forward pass with "_bwd". Norms also write their statistics ("norm1_stats",
// [M, 1]: r, or [M, 2]: r and r·mean, fp32). The result knows the
// graph that it was derived from. Asserts that the graph has no backward pass, that every operator
// on the way from an input to an output has a gradient (not: decomposed or split norms, cache) and
// that each tensor's gradient is covered by slices that are equal or disjoint.
Graph differentiate(const Graph& graph, const BackwardOptions& options = {});

// Whether any operator belongs to a backward pass.
bool has_backward(const Graph& graph);

// One tensor that crosses from the forward to the backward pass, and the bytes of it that the
// backward pass reads. Inputs count (their memory is held), weights and tables do not.
struct SavedTensor {
  TensorId tensor;
  Bytes bytes;
};
std::vector<SavedTensor> saved_tensors(const Graph& graph);

}  // namespace fuseline
