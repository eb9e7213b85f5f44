// Two halves of every head side by side, a step of RoPE.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_concat_halves {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> negated = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t half = op.attributes.as<Halves>().head_width / 2;
  FUSELINE_ASSERT(half > 0 && negated.cols % half == 0, op.name);
  // Where the negated half goes; the half of x that stays comes from there.
  const std::int64_t to = op.attributes.as<Halves>().swapped ? half : 0;
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t n = 0; n < negated.cols; ++n) {
      const std::int64_t head = n / half * 2 * half;
      y(m, head + to + n % half) = negated(m, n);
      y(m, head + half - to + n % half) = x(m, head + to + n % half);
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const bool swapped = op.attributes.as<Halves>().swapped;
  const Value negated = e.tile(op.reads[0]);
  const Value half =
      e.halves(op.reads[1], op.attributes.as<Halves>().head_width, swapped, swapped ? "x2" : "x1");
  const Value y = e.fresh("y");
  e.emit(ConcatHalves{y, swapped ? half : negated, swapped ? negated : half,
                      op.attributes.as<Halves>().head_width});
  e.produce(op.writes[0], y);
}

}  // namespace
}  // namespace in_concat_halves

constinit const Operator operators::concat_halves{
    .name = "concat_halves",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "y = (n, first half of x) of each head, or (second half, n)",
    .reads = {{"n", "M", "N"}, {"x", "M", "2N"}},
    .write = OperandSpec{"y", "M", "2N"},
    .flops = per_output<0>,
    .sum_length = one_term,
    .reference = in_concat_halves::compute,
    .lower = in_concat_halves::lower,
    .extent = widest,
    .gradient = no_gradient(kMadeLater),
    .framework = always<Implementation::concat>,
    .part_read = 1};

}  // namespace fuseline
