// The gradient of the values.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"

namespace fuseline {

namespace in_attention_d_v {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  sum_over_queries(g, op, in, out, 1.0);
}

// dV = P^T dY
void mainloop(Emitter& e, const Op& op, bool) {
  heads_result(e, op, scores_with_queries(op), false);
}

}  // namespace
}  // namespace in_attention_d_v

constinit const Operator operators::attention_d_v{
    .name = "attention_d_v",
    .op_class = OpClass::attention,
    .locality = Locality::contraction,
    .formula = "dv = p^T dy, summed over the heads that share a value",
    .reads = {{"p", "P", "S"}, {"dy", "M", "Q"}},
    .write = OperandSpec{"dv", "R", "C"},
    .flops = attention_value_flops,
    .sum_length = queries_of_a_key,
    .reference = in_attention_d_v::compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = never_alone,
    .mainloop = in_attention_d_v::mainloop,
    .attention = true,
    .columns = ColumnOrder::lost};

}  // namespace fuseline
