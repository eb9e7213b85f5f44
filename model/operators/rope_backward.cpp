// The inverse rotation of every pair.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/rotation.h"

namespace fuseline {

namespace in_rope_backward {
namespace {

using namespace reference;

// The inverse rotation of every pair.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> cos = read(g, in, op.reads[1]);
  const View<const double> sin = read(g, in, op.reads[2]);
  const View<double> dx = write(g, out, op.writes[0]);
  const std::int64_t d = op.attributes.as<Pairs>().head_width;
  const std::int64_t turned = op.attributes.as<Pairs>().turned();
  FUSELINE_ASSERT(d > 0 && turned <= d && turned % 2 == 0 && dy.cols % d == 0, op.name);
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    const std::int64_t t = m % cos.rows;
    for (std::int64_t head = 0; head < dy.cols; head += d) {
      for (std::int64_t c = turned; c < d; ++c) dx(m, head + c) = dy(m, head + c);
      for (std::int64_t j = 0; j < turned / 2; ++j) {
        const Pair p = pair_of(op.attributes.as<Pairs>(), j, turned / 2);
        const double a = dy(m, head + p.a);
        const double b = dy(m, head + p.b);
        dx(m, head + p.a) = a * cos(t, p.a) + b * sin(t, p.b);
        dx(m, head + p.b) = b * cos(t, p.b) - a * sin(t, p.a);
      }
    }
  }
}

void lower(Emitter& e, const Op& op) { rotate(e, op, pairs::rope_inverse); }

}  // namespace
}  // namespace in_rope_backward

constinit const Operator operators::rope_backward{
    .name = "rope_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "(a, b) -> (a·cos + b·sin, b·cos - a·sin) for each pair",
    .reads = {kDy, {"cos", "T", "r"}, {"sin", "T", "r"}},
    .write = kDx,
    .flops = rotation_flops,
    .sum_length = one_term,
    .reference = in_rope_backward::compute,
    .lower = in_rope_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

}  // namespace fuseline
