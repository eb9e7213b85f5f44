// The gradients of gate and up, and GeGLU's output again where someone reads it.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace {

using namespace reference;

// t = gelu(g) 9, du = dy·t, gelu' 17, ·u, ·dy; the recomputed output t·u one more.
Flops count(const Graph& graph, const Op& op) {
  return op.writes.size() > 1 ? per_input<30>(graph, op) : per_input<29>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> gu = read(g, in, op.reads[1]);
  const View<double> dgu = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    for (std::int64_t n = 0; n < dy.cols; ++n) {
      const Pair p = pair_of(op.attributes.as<Pairs>(), n, dy.cols);
      const double up = gu(m, p.b);
      const double t = gelu(gu(m, p.a));
      dgu(m, p.a) = dy(m, n) * up * gelu_slope(gu(m, p.a));
      dgu(m, p.b) = dy(m, n) * t;
      if (op.writes.size() > 1) write(g, out, op.writes[1])(m, n) = t * up;
    }
  }
}

// dG = dO·U·gelu'(G), dU = dO·t, recomputed O = t·U; t = gelu(G).
void lower(Emitter& e, const Op& op) {
  if (op.attributes.as<Pairs>().interleaved) {
    const Value dy = e.tile(op.reads[0]);
    const Value gu = e.tile(op.reads[1]);
    const Value dgu = e.fresh("dgu");
    const Value again = e.fresh("o");
    e.emit(PairMap{{dgu, again}, pairs::geglu_backward, {gu, dy}, 1});
    e.produce(op.writes[0], dgu);
    if (op.writes.size() > 1) e.produce(op.writes[1], again);
    return;
  }
  const auto half = [](Operand o, bool upper) {
    o.cols /= 2;
    if (upper) o.col_begin += o.cols;
    return o;
  };
  const Value dy = e.tile(op.reads[0]);
  const Value gate = e.tile(half(op.reads[1], false));
  const Value up = e.tile(half(op.reads[1], true));
  const Value t = e.map(maps::gelu_tanh, {gate}, "t");
  const Value du = e.map(maps::mul, {dy, t}, "du");
  const Value slope = e.map(maps::gelu_tanh_slope, {gate}, "v");
  const Value dt = e.map(maps::mul, {dy, up}, "dt");
  const Value dg = e.map(maps::mul, {dt, slope}, "dg");
  e.produce(half(op.writes[0], false), dg);
  e.produce(half(op.writes[0], true), du);
  if (op.writes.size() > 1) e.produce(op.writes[1], e.map(maps::mul, {t, up}, "o"));
}

Extent extent(const Op& op) {
  return {op.writes[0].rows,
          op.attributes.as<Pairs>().interleaved ? op.writes[0].cols : op.reads[0].cols};
}

bool in_parts(const Op& op) { return !op.attributes.as<Pairs>().interleaved; }

}  // namespace

constinit const Operator operators::geglu_backward{
    .name = "geglu_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "(dg, du) = (dy·u·gelu'(g), dy·t), t = gelu(g); recomputed y = t·u",
    .reads = {kDy, {"gu", "M", "2N"}},
    .write = OperandSpec{"dgu", "M", "2N"},
    .flops = count,
    .sum_length = one_term,
    .reference = compute,
    .lower = lower,
    .extent = extent,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .also_writes = kY,
    .in_parts = in_parts,
    .gate = {.activation = operators::gelu, .gradient = operators::gelu_backward, .backward = true}};

}  // namespace fuseline
