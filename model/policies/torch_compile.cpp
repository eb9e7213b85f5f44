// Inductor + Triton: all element-wise operators and reductions between library GEMMs become
// generated loops; a bias stays with its GEMM. Cheap shared values are computed again in each loop.
// Loops of one size that share an input are joined (RoPE of Q and K when they have as many heads).
// Checked against the kernels that PyTorch 2.11 launches, and their L2 bytes.
#include "model/implementation.h"
#include "model/policies/rules.h"
#include "model/rewrites/inline_pointwise.h"

namespace fuseline {

namespace {

std::string fuse(const Graph& graph, const std::vector<OpId>& from, const std::vector<OpId>& to,
                 const Edge& edge) {
  if (is_loop(graph, from) && is_loop(graph, to)) return "";
  if (!has_gemm(graph, from)) return "attention is a library call";
  if (graph.op(edge.to).kind == OpKind::bias_add) return "";
  return "the library call takes no such epilogue, only a bias";
}

}  // namespace

PolicyRules torch_compile_policy() {
  return {.info = {"torch-compile", "Inductor + Triton",
                   "all pointwise and reductions between library GEMMs; flash attention"},
          .rewrites = {inline_pointwise()},
          .fuse = fuse,
          .siblings = same_loop_and_input,
          .implement = generated_implementation,
          .cache_writes_first = true};
}

}  // namespace fuseline
