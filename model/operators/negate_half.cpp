// The negated half of every head, a step of RoPE.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_negate_half {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t half = op.attributes.as<Halves>().head_width / 2;
  const std::int64_t from = op.attributes.as<Halves>().swapped ? 0 : half;
  FUSELINE_ASSERT(half > 0 && y.cols % half == 0, op.name);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n)
      y(m, n) = -x(m, n / half * 2 * half + from + n % half);
}

void lower(Emitter& e, const Op& op) {
  const bool upper = !op.attributes.as<Halves>().swapped;
  const Value half =
      e.halves(op.reads[0], op.attributes.as<Halves>().head_width, upper, upper ? "x2" : "x1");
  e.produce(op.writes[0], e.map(maps::negate, {half}, "n"));
}

}  // namespace
}  // namespace in_negate_half

constinit const Operator operators::negate_half{
    .name = "negate_half",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "y = -(second half of each head), or the first",
    .reads = {{"x", "M", "2N"}},
    .write = kY,
    .flops = per_output<1>,
    .sum_length = one_term,
    .reference = in_negate_half::compute,
    .lower = in_negate_half::lower,
    .extent = of_result,
    .gradient = no_gradient(kMadeLater),
    .framework = always<Implementation::strided>,
    .part_read = 0};

}  // namespace fuseline
