// A policy from outside the layers, in one file: what is element-wise goes behind its GEMM,
// whatever it is; nothing else is fused.
#include "model/implementation.h"
#include "model/operators/operator_table.h"
#include "model/policies/support/rules.h"

namespace fuseline::extension {

namespace {

std::string behind_a_gemm(const Graph& graph, const std::vector<OpId>& from,
                          const std::vector<OpId>&, const Edge& edge) {
  const bool element_wise = graph.op(edge.to).kind->op_class == OpClass::pointwise;
  return has_gemm(graph, from) && element_wise ? "" : "only element-wise work goes behind a GEMM";
}

PolicyRules gemm_and_loops() {
  return {.info = PolicyInfo{.name = "gemm-and-loops",
                             .imitates = "an example",
                             .fuses = "element-wise operators behind GEMMs"},
          .rewrites = {},
          .training = TrainingRules{.options = [](const Graph&) { return BackwardOptions{}; }},
          .fused_attention = false,
          .fuse = behind_a_gemm,
          .siblings = {},
          .implement = hand_written_implementation};
}

const AddedPolicy added(gemm_and_loops);

}  // namespace

}  // namespace fuseline::extension
