// The gradient of the keys.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"

namespace fuseline {

namespace in_attention_d_k {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  sum_over_queries(g, op, in, out, op.attributes.as<AttentionShape>().scale);
}

// dK = scale·dS^T Q
void mainloop(Emitter& e, const Op& op, bool) {
  heads_result(e, op, scores_with_queries(op), true);
}

}  // namespace
}  // namespace in_attention_d_k

constinit const Operator operators::attention_d_k{
    .name = "attention_d_k",
    .op_class = OpClass::attention,
    .locality = Locality::contraction,
    .formula = "dk = scale·ds^T q, summed over the heads that share a key",
    .reads = {{"ds", "P", "S"}, {"q", "M", "Q"}},
    .write = OperandSpec{"dk", "R", "C"},
    .flops = attention_flops,
    .sum_length = queries_of_a_key,
    .reference = in_attention_d_k::compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = never_alone,
    .mainloop = in_attention_d_k::mainloop,
    .attention = true,
    .columns = ColumnOrder::heads_of_second};

}  // namespace fuseline
