// LayerNorm or RMSNorm without weight and bias: AdaLN scales and shifts the result itself.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/normalising.h"

namespace fuseline {

namespace in_normalise {
namespace {

using namespace reference;

Flops count(const Graph& graph, const Op& op) {
  return op.attributes.as<Normalise>().centred ? per_row<5, 4>(graph, op)
                                               : per_row<3, 3>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const RowMoments of = row_moments(x, op.attributes.as<Normalise>(), m);
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = (x(m, n) - of.mean) * of.r;
  }
}

void lower(Emitter& e, const Op& op) {
  const RowScale of =
      row_scale_of(e, e.tile(op.reads[0]), op.reads[0].cols, op.attributes.as<Normalise>());
  e.produce(op.writes[0], e.map(maps::mul, {of.centred, of.r}, "xn"));
}

void gradient(Adjoint& a) { element_wise_gradient(a, operators::normalise_backward); }

Attributes called(OperatorCall& c) {
  return Normalise{c.number_or("eps", 1e-6, 1e-30, 1), c.flag_or("centred", true)};
}

}  // namespace
}  // namespace in_normalise

constinit const Operator operators::normalise{
    .name = "normalise",
    .op_class = OpClass::norm,
    .locality = Locality::full_row,
    .formula = "y = (x - mean x) · rsqrt(var x + eps), or x · rsqrt(mean x² + eps)",
    .reads = {kX},
    .write = kY,
    .flops = in_normalise::count,
    .sum_length = input_columns,
    .reference = in_normalise::compute,
    .lower = in_normalise::lower,
    .extent = widest,
    .gradient = in_normalise::gradient,
    .framework = always<Implementation::row_norm>,
    .stream = StreamCost::welford,
    .called = in_normalise::called};

}  // namespace fuseline
