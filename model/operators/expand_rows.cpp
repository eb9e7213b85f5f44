// A number of every row, repeated along it.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_expand_rows {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> r = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = op.attributes.as<Scalar>().value * r(m, 0);
}

void lower(Emitter& e, const Op& op) {
  const Value r = e.per_row(op.reads[0], "r");
  const Value y = e.map(maps::scale_by_constant, {r}, "r", op.attributes.as<Scalar>().value);
  e.produce(op.writes[0], y);
}

}  // namespace
}  // namespace in_expand_rows

constinit const Operator operators::expand_rows{.name = "expand_rows",
                                                .op_class = OpClass::pointwise,
                                                .locality = Locality::tile_local,
                                                .formula = "y = scalar·r, r one value a row",
                                                .reads = {{"r", "M", "1"}},
                                                .write = kY,
                                                .flops = per_output<1>,
                                                .sum_length = one_term,
                                                .reference = in_expand_rows::compute,
                                                .lower = in_expand_rows::lower,
                                                .extent = widest,
                                                .gradient = no_gradient(kOfAGradient),
                                                .framework = always<Implementation::strided>};

}  // namespace fuseline
