// PyTorch eager: library kernels for GEMM (bias in its epilogue), norm and attention; RoPE, SiLU
// and multiply as framework primitives. Checked against the kernels that PyTorch 2.11 launches.
#include "model/implementation.h"
#include "model/operators/all_operators.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/copy_slices.h"
#include "model/rewrites/decompose_modulation.h"
#include "model/rewrites/decompose_rope.h"
#include "model/rewrites/decompose_swiglu.h"
#include "model/rewrites/order_linear_gradients.h"
#include "model/rewrites/split_product_sums.h"

namespace fuseline {

namespace in_eager {
namespace {

// The library sums the gradients of a norm's weight and bias in one kernel.
bool gradients_of_one_norm(const Graph& graph, const std::vector<OpId>& a,
                           const std::vector<OpId>& b) {
  const Op& weight = graph.op(a.front());
  const Op& bias = graph.op(b.front());
  return weight.kind == operators::norm_weight_grad && bias.kind == operators::column_sum &&
         weight.reads[0].tensor == bias.reads[0].tensor;
}

}  // namespace
}  // namespace in_eager

PolicyRules policy::eager() {
  return {
      .info =
          PolicyInfo{
              .name = "eager",
              .imitates = "PyTorch eager, library norm kernel",
              .fuses =
                  "attention; norm is one kernel; RoPE 5 per tensor; SiLU and multiply separate",
              .place = 30,
              .version = "2.11"},
      .rewrites = {copy_slices(), decompose_rope(), decompose_swiglu(), decompose_modulation()},
      .training = TrainingRules{.before = {decompose_modulation()},
                                .options = framework_options,
                                .after = {accumulate_dq(), split_product_sums(),
                                          sum_grouped_heads(), copy_slices(), decompose_rope(),
                                          decompose_swiglu(), order_linear_gradients()}},
      .fuse = bias_into_gemm,
      .siblings = in_eager::gradients_of_one_norm,
      .implement = framework_implementation,
      .beside = framework_launches};
}

}  // namespace fuseline
