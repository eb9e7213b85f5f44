#include "model/policies/support/rules.h"

#include <algorithm>

#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/why_not.h"

namespace fuseline {

namespace {

bool pointwise_only(const Graph& graph, const std::vector<OpId>& ops) {
  return std::all_of(ops.begin(), ops.end(),
                     [&](OpId id) { return graph.op(id).kind->op_class == OpClass::pointwise; });
}

}  // namespace

BackwardOptions flash_attention_options(const Graph&) {
  BackwardOptions options;
  options.save_log_sum_exp = true;
  return options;
}

BackwardOptions framework_options(const Graph& forward) {
  BackwardOptions options = flash_attention_options(forward);
  options.concatenate_slices = true;
  return options;
}

BackwardOptions recompute_options(const Graph& forward) {
  BackwardOptions options = flash_attention_options(forward);
  for (const Op& op : forward.ops()) {
    if (op.kind->cheap_again) options.recompute.push_back(forward.tensor(op.writes[0].tensor).name);
  }
  return options;
}

bool in_attention_library(const Graph& graph, const std::vector<OpId>& ops) {
  return has_attention(graph, ops) || any_op(graph, ops, is_around_attention);
}

std::string one_kernel_per_operator(const Graph&, const std::vector<OpId>&,
                                    const std::vector<OpId>&, const Edge&) {
  return "the policy launches one kernel per operator";
}

std::string bias_into_gemm(const Graph& graph, const std::vector<OpId>& from,
                           const std::vector<OpId>& to, const Edge&) {
  const bool bias = all_of_kind(graph, to, operators::bias_add);
  const auto conv = [](const Op& op) { return op.kind->op_class == OpClass::conv; };
  if (bias && (has_gemm(graph, from) || any_op(graph, from, conv))) return "";
  return "the policy launches one kernel per operator (a bias belongs to its GEMM)";
}

std::string epilogue_programs(const Graph& graph, const std::vector<OpId>& from,
                              const std::vector<OpId>& to, const Edge&) {
  if (has_attention(graph, from) || has_attention(graph, to))
    return "attention's core stays a kernel of its own";
  return "";
}

bool same_loop_and_input(const Graph& graph, const std::vector<OpId>& a,
                         const std::vector<OpId>& b) {
  if (!pointwise_only(graph, a) || !pointwise_only(graph, b)) return false;
  const Operand& size_a = graph.op(a.back()).writes[0];
  const Operand& size_b = graph.op(b.back()).writes[0];
  if (size_a.rows != size_b.rows || size_a.cols != size_b.cols) return false;
  return any_op(graph, a, [&](const Op& x) {
    return any_op(graph, b, [&](const Op& y) {
      for (const Operand& p : x.reads)
        for (const Operand& q : y.reads)
          if (p == q) return true;
      return false;
    });
  });
}

bool both_cache_appends(const Graph& graph, const std::vector<OpId>& a,
                        const std::vector<OpId>& b) {
  const auto appends = [&](OpId id) { return graph.op(id).kind->appends; };
  return std::ranges::all_of(a, appends) && std::ranges::all_of(b, appends);
}

bool is_loop(const Graph& graph, const std::vector<OpId>& ops) { return !has_mainloop(graph, ops); }

bool library_takes(const Graph& graph, const std::vector<OpId>& gemm, const std::vector<OpId>& to) {
  const auto library = [&](OpId id) { return graph.op(id).kind->library_epilogue; };
  return has_gemm(graph, gemm) && std::all_of(to.begin(), to.end(), library);
}

}  // namespace fuseline
