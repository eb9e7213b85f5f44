// Inductor + Triton: all element-wise operators and reductions between library GEMMs become
// generated loops; a bias stays with its GEMM. Cheap shared values are computed again in each loop.
// Loops of one size that share an input are joined (RoPE of Q and K when they have as many heads).
// Checked against the kernels that PyTorch 2.11 launches, and their L2 bytes.
#include <algorithm>

#include "model/implementation.h"
#include "model/operators/all_operators.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/inline_pointwise.h"
#include "model/rewrites/order_linear_gradients.h"
#include "model/rewrites/split_column_sums.h"

namespace fuseline {

namespace in_torch_compile {
namespace {

// Whether nobody outside the group reads the tensor.
bool only_for(const Graph& graph, TensorId tensor, const std::vector<OpId>& group) {
  return std::ranges::all_of(graph.consumers(tensor), [&](OpId reader) {
    return std::ranges::find(group, reader) != group.end();
  });
}

// Sums over the rows of tensors that have an input in common share a loop.
bool column_sums_of_one_input(const Graph& graph, const std::vector<OpId>& a,
                              const std::vector<OpId>& b) {
  const auto sums = [&](const std::vector<OpId>& ops) {
    return any_op(graph, ops, [](const Op& op) { return op.kind == operators::col_stats_partial; });
  };
  if (!sums(a) || !sums(b)) return false;
  return any_op(graph, a, [&](const Op& x) {
    return any_op(graph, b, [&](const Op& y) {
      for (const Operand& p : x.reads)
        for (const Operand& q : y.reads)
          if (p.tensor == q.tensor && p.rows > 1 && p.cols > 2) return true;
      return false;
    });
  });
}

// Norms of as many heads of one tensor, with what follows them.
bool same_norms_of_heads(const Graph& graph, const std::vector<OpId>& a,
                         const std::vector<OpId>& b) {
  const auto norm = [&](const std::vector<OpId>& ops) -> const Op* {
    for (const OpId id : ops)
      if (graph.op(id).kind == operators::head_norm) return &graph.op(id);
    return nullptr;
  };
  const Op* x = norm(a);
  const Op* y = norm(b);
  return x != nullptr && y != nullptr && x->reads[0].tensor == y->reads[0].tensor &&
         x->reads[0].rows == y->reads[0].rows && x->reads[0].cols == y->reads[0].cols;
}

bool siblings(const Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  return same_loop_and_input(graph, a, b) || same_norms_of_heads(graph, a, b) ||
         column_sums_of_one_input(graph, a, b);
}

std::string fuse(const Graph& graph, const std::vector<OpId>& from, const std::vector<OpId>& to,
                 const Edge& edge) {
  if (in_attention_library(graph, from) || in_attention_library(graph, to))
    return "attention is a library call";
  if (is_loop(graph, from) && is_loop(graph, to)) {
    const Op& reader = graph.op(edge.to);
    if (reader.kind == operators::col_stats_partial && !only_for(graph, edge.tensor, to))
      return "sums over rows are a loop of their own over stored values";
    return "";
  }
  if (has_scan(graph, from)) return "a scan is a library call, which takes no epilogue";
  if (graph.op(edge.to).kind == operators::bias_add) return "";
  return "the library call takes no such epilogue, only a bias";
}

}  // namespace
}  // namespace in_torch_compile

PolicyRules policy::torch_compile() {
  return {
      .info =
          PolicyInfo{.name = "torch-compile",
                     .imitates = "Inductor + Triton",
                     .fuses = "all pointwise and reductions between library GEMMs; flash attention",
                     .place = 80,
                     .version = "2.11"},
      .rewrites = {inline_pointwise()},
      .training =
          TrainingRules{.options = framework_options,
                        .after = {accumulate_dq(), sum_grouped_heads(), order_linear_gradients(),
                                  split_column_sums(), inline_pointwise()}},
      .fuse = in_torch_compile::fuse,
      .siblings = in_torch_compile::siblings,
      .implement = generated_implementation,
      .beside = generated_launches,
      .cache_writes_first = true,
      .depth_first = true};
}

}  // namespace fuseline
