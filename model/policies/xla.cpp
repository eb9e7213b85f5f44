// XLA:GPU: chains of element-wise operators and row reductions become one fusion each (a shared
// result is stored by a multi-output fusion, not computed twice); GEMMs are library calls that take
// bias and GELU; attention is the library's fused one, as XLA does on Hopper. An update of the KV
// cache in place is the root of its own fusion, so it joins its producer but no sibling.
#include "model/implementation.h"
#include "model/operators/all_operators.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/attention_backward.h"

namespace fuseline {

namespace in_xla {
namespace {

std::string fuse(const Graph& graph, const std::vector<OpId>& from, const std::vector<OpId>& to,
                 const Edge&) {
  if (library_takes(graph, from, to)) return "";
  if (has_gemm(graph, from)) return "the library call takes no such epilogue, only bias and GELU";
  if (has_scan(graph, from)) return "a scan is a library call, which takes no epilogue";
  if (in_attention_library(graph, from) || in_attention_library(graph, to))
    return "attention is a library call";
  return "";
}

bool appends(const Graph& graph, const std::vector<OpId>& ops) {
  return any_op(graph, ops, [](const Op& op) { return op.kind->appends; });
}

bool is_column_sum(const Op& op) {
  return op.kind == operators::norm_weight_grad || op.kind == operators::column_sum;
}

// Sums over the rows of one operand are one fusion with several results.
bool column_sums(const Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  return a.size() == 1 && b.size() == 1 && is_column_sum(graph.op(a[0])) &&
         is_column_sum(graph.op(b[0])) &&
         graph.op(a[0]).reads[0].tensor == graph.op(b[0]).reads[0].tensor;
}

bool siblings(const Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  if (column_sums(graph, a, b)) return true;
  return !appends(graph, a) && !appends(graph, b) && same_loop_and_input(graph, a, b);
}

}  // namespace
}  // namespace in_xla

PolicyRules policy::xla() {
  return {
      .info =
          PolicyInfo{
              .name = "xla",
              .imitates = "XLA:GPU",
              .fuses =
                  "element-wise and reduction chains; GEMMs are library calls with bias/activation "
                  "epilogues",
              .place = 70,
              .unverified =
                  "a plan after its documentation; six blocks of JAX 0.11.2 took 2 to 22 % longer"},
      .rewrites = {},
      .training = TrainingRules{.options = framework_options,
                                .after = {accumulate_dq(), sum_grouped_heads()}},
      .fuse = in_xla::fuse,
      .siblings = in_xla::siblings,
      .implement = generated_implementation,
      .beside = generated_launches};
}

}  // namespace fuseline
