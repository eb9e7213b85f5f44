// An operator from outside the layers, in one file, and the operator of its gradient: QuickGELU,
// q · sigmoid(1.702 q), of q = x limited to [-limits[m], limits[m]] in row m. Nothing else in the
// project names it.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "tests/extension/clip.h"
#include "tests/extension/quick_gelu.h"

namespace fuseline::extension {

namespace {

using namespace reference;

constexpr double kSlope = 1.702;
constexpr OperandSpec kLimits{"limits", "M", "1"};

double limited(double x, double limit) { return std::min(std::max(x, -limit), limit); }

// What it computes, in fp64: every other machine is held against this.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double limit) {
    const double q = limited(x, limit);
    return q * sigmoid(kSlope * q);
  });
}

// The same as primitives: neither the clip nor the map is the project's.
Value clip(Emitter& e, Value x, const Operand& limits, bool slope = false) {
  const Value out = e.fresh(slope ? "inside" : "q");
  e.emit(Clip{.out = out, .in = x, .limits = limits, .slope = slope});
  return out;
}

void lower(Emitter& e, const Op& op) {
  const Value q = clip(e, e.tile(op.reads[0]), op.reads[1]);
  e.produce(op.writes[0], e.map(quick_gelu, {q}, "o"));
}

// dx = dy · s · (1 + 1.702 q (1 - s)) between the limits, else 0; s = sigmoid(1.702 q). Limits are
// given and have no gradient.
void compute_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> limits = read(g, in, op.reads[2]);
  const View<double> dx = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < dx.rows; ++m) {
    const double limit = limits(m, 0);
    for (std::int64_t n = 0; n < dx.cols; ++n) {
      const double q = limited(x(m, n), limit);
      const double s = sigmoid(kSlope * q);
      const bool inside = x(m, n) > -limit && x(m, n) < limit;
      dx(m, n) = inside ? dy(m, n) * s * (1.0 + kSlope * q * (1.0 - s)) : 0.0;
    }
  }
}

void lower_backward(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value x = e.tile(op.reads[1]);
  const Value q = clip(e, x, op.reads[2]);
  const Value u = e.map(maps::scale_by_constant, {q}, "u", kSlope);
  const Value s = e.map(maps::sigmoid, {u}, "s");
  const Value rest = e.map(maps::add_constant, {e.map(maps::negate, {s}, "n")}, "n", 1.0);
  const Value bend = e.map(maps::add_constant, {e.map(maps::mul, {u, rest}, "v")}, "v", 1.0);
  const Value slope = e.map(maps::mul, {s, bend}, "v");
  const Value seen = e.map(maps::mul, {slope, clip(e, x, op.reads[2], true)}, "v");
  e.produce(op.writes[0], e.map(maps::mul, {dy, seen}, "dx"));
}

constinit const Operator clipped_gelu_backward{
    .name = "clipped_gelu_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "dx = dy·s·(1 + 1.702 q (1 - s)) where |x| < limit, else 0",
    .reads = {kDy, kX, kLimits},
    .write = kDx,
    .flops = per_output<13>,
    .sum_length = one_term,
    .reference = compute_backward,
    .lower = lower_backward,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

void gradient(Adjoint& a) {
  const Op& op = a.op();
  FUSELINE_ASSERT(!a.wants(1), "limits are given: they have no gradient");
  a.emit("d_" + op.name, clipped_gelu_backward, {a.dy(), a.forward_value(op.reads[0]), op.reads[1]},
         {a.target(0)});
}

constinit const Operator clipped_gelu{
    .name = "clipped_gelu",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = q · sigmoid(1.702 q), q = x limited to ±limits of its row",
    .reads = {kX, kLimits},
    .write = kY,
    .flops = per_output<7>,
    .sum_length = one_term,
    .reference = compute,
    .lower = lower,
    .extent = widest,
    .gradient = gradient,
    .framework = by_layout,
    .stream = StreamCost::exponential};

const AddedOperator added(clipped_gelu);
const AddedOperator added_backward(clipped_gelu_backward);

}  // namespace

}  // namespace fuseline::extension
