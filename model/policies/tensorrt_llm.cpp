// TensorRT-LLM: GEMM + bias + activation (gated ones on interleaved weights), residual + norm (+
// codes of the row) in one kernel across the block boundary, attention that rotates Q and K and
// writes the cache as it loads.
#include "model/implementation.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/store_places.h"

namespace fuseline {

namespace in_tensorrt_llm {
namespace {

bool activation_or_bias(const Op& op) {
  return op.kind == operators::bias_add || op.kind == operators::gelu || is_gated(op);
}

std::string fuse(const Graph& graph, const std::vector<OpId>& from, const std::vector<OpId>& to,
                 const Edge& edge) {
  const Op& a = graph.op(edge.from);
  const Op& b = graph.op(edge.to);
  const auto feeds_attention = [](const Op& op) {
    return op.kind == operators::rope || op.kind->appends;
  };
  if (has_gemm(graph, from) && activation_or_bias(b)) return "";
  if (a.kind == operators::residual_add &&
      (b.kind == operators::rms_norm || b.kind == operators::layer_norm))
    return "";
  if (a.kind == operators::head_norm && b.kind == operators::rope) return "";
  const bool codes = b.kind == operators::quantise_rows || b.kind == operators::quantise_groups;
  if (codes && is_norm(a)) return "";
  if (feeds_attention(a) && (has_attention(graph, to) || feeds_attention(b))) return "";
  return "the policy fuses GEMM + bias + activation, residual + norm, and RoPE and cache write "
         "into attention";
}

}  // namespace
}  // namespace in_tensorrt_llm

PolicyRules policy::tensorrt_llm() {
  return {
      .info =
          PolicyInfo{
              .name = "tensorrt-llm",
              .imitates = "TensorRT-LLM",
              .fuses =
                  "GEMM + bias + activation, residual + norm, attention with RoPE and cache write",
              .place = 60,
              .unverified =
                  "a plan after its documentation; no kernel of TensorRT-LLM was compared"},
      .rewrites = {interleave_gate_up(), rotate_entry_norm(), store_places()},
      .why_no_training = "it is an inference engine",
      .fuse = in_tensorrt_llm::fuse,
      .siblings = {},
      .implement = hand_written_implementation};
}

}  // namespace fuseline
