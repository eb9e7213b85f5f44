// Gradients of the query heads that share a key, summed.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_head_sum {
namespace {

using namespace reference;

// One addition for every element that joins another.
Flops count(const Graph& graph, const Op& op) {
  Flops additions = per_input<1>(graph, op);
  return additions -= per_output<1>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  const std::int64_t d = y.cols / a.kv_heads;  // that of keys, or that of values
  FUSELINE_ASSERT(x.cols == a.heads * d && y.cols == a.kv_heads * d, op.name);
  clear(y);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, kv_head(a, n / d) * d + n % d) += x(m, n);
}

void lower(Emitter& e, const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  const Value x = e.tile(op.reads[0]);
  const Value y = e.fresh("sum");
  e.emit(HeadSum{y, x, a.heads / a.kv_heads, op.writes[0].cols / a.kv_heads});
  e.produce(op.writes[0], y);
}

}  // namespace
}  // namespace in_head_sum

constinit const Operator operators::head_sum{
    .name = "head_sum",
    .op_class = OpClass::attention,
    .locality = Locality::full_row,
    .formula = "y = sum over the query heads that share a key",
    .reads = {{"x", "M", "Q"}},
    .write = OperandSpec{"y", "M", "C"},
    .flops = in_head_sum::count,
    .sum_length = heads_of_a_key,
    .reference = in_head_sum::compute,
    .lower = in_head_sum::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::vectorized>,
    .around_attention = true,
    .alone = "needs all heads that share a key",
    .columns = ColumnOrder::heads};

}  // namespace fuseline
