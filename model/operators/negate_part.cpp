// Columns of every head negated, a step of a rotation whose pairs are adjacent or which turns only
// a part of each head.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_negate_part {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const ColumnPart& part = op.attributes.as<HeadPart>().part;
  FUSELINE_ASSERT(part.fits(x.cols) && y.cols == part.cols(x.cols), op.name);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = -x(m, part.column(n));
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.part(op.reads[0], op.attributes.as<HeadPart>().part, "x");
  e.produce(op.writes[0], e.map(maps::negate, {x}, "n"));
}

}  // namespace
}  // namespace in_negate_part

constinit const Operator operators::negate_part{.name = "negate_part",
                                                .op_class = OpClass::pointwise,
                                                .locality = Locality::pair_local,
                                                .formula = "y = -(some columns of each head)",
                                                .reads = {{"x", "M", "W"}},
                                                .write = kY,
                                                .flops = per_output<1>,
                                                .sum_length = one_term,
                                                .reference = in_negate_part::compute,
                                                .lower = in_negate_part::lower,
                                                .extent = of_result,
                                                .gradient = no_gradient(kMadeLater),
                                                .framework = always<Implementation::strided>,
                                                .part_read = 0};

}  // namespace fuseline
