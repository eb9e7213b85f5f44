// The inverse rotation of every pair.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace {

using namespace reference;

// The inverse rotation of every pair.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> cos = read(g, in, op.reads[1]);
  const View<const double> sin = read(g, in, op.reads[2]);
  const View<double> dx = write(g, out, op.writes[0]);
  const std::int64_t d = op.attributes.as<Pairs>().head_width;
  FUSELINE_ASSERT(d > 0 && d % 2 == 0 && dy.cols % d == 0, op.name);
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    const std::int64_t t = m % cos.rows;
    for (std::int64_t head = 0; head < dy.cols; head += d) {
      for (std::int64_t j = 0; j < d / 2; ++j) {
        const Pair p = pair_of(op.attributes.as<Pairs>(), j, d / 2);
        const double a = dy(m, head + p.a);
        const double b = dy(m, head + p.b);
        dx(m, head + p.a) = a * cos(t, p.a) + b * sin(t, p.b);
        dx(m, head + p.b) = b * cos(t, p.b) - a * sin(t, p.a);
      }
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value cos = e.table(op.reads[1]);
  const Value sin = e.table(op.reads[2]);
  const std::int64_t distance =
      op.attributes.as<Pairs>().interleaved ? 1 : op.attributes.as<Pairs>().head_width / 2;
  e.produce(op.writes[0], e.pairs(pairs::rope_inverse, {dy, cos, sin}, "rot", distance));
}

}  // namespace

constinit const Operator operators::rope_backward{
    .name = "rope_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "(a, b) -> (a·cos + b·sin, b·cos - a·sin) for each pair",
    .reads = {kDy, {"cos", "T", "d"}, {"sin", "T", "d"}},
    .write = kDx,
    .flops = per_output<3>,
    .sum_length = one_term,
    .reference = compute,
    .lower = lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

}  // namespace fuseline
