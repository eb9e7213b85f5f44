// SwiGLU of gate and up, side by side or adjacent columns.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> gu = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t n = 0; n < y.cols; ++n) {
      const Pair p = pair_of(op.attributes.as<Pairs>(), n, y.cols);
      const double gate = gu(m, p.a);
      y(m, n) = gate * sigmoid(gate) * gu(m, p.b);
    }
  }
}

// Gate and up are two operands of F columns, or adjacent columns of one.
void lower(Emitter& e, const Op& op) {
  if (op.attributes.as<Pairs>().interleaved) {
    const Value x = e.tile(op.reads[0]);
    e.produce(op.writes[0], e.pairs(pairs::swiglu, {x}, "o", 1));
    return;
  }
  Operand gate = op.reads[0];
  gate.cols /= 2;
  Operand up = gate;
  up.col_begin += gate.cols;
  const Value g = e.tile(gate);
  const Value u = e.tile(up);
  const Value t = e.map(maps::silu, {g}, "t");
  e.produce(op.writes[0], e.map(maps::mul, {t, u}, "o"));
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  const Operand gu = a.forward_value(op.reads[0]);
  std::vector<Operand> writes{a.target(0)};
  if (const Operand* again = a.wanted_again()) writes.push_back(*again);
  a.emit("d_" + op.name, operators::swiglu_backward, {a.dy(), gu}, std::move(writes),
         op.attributes);
}

Extent extent(const Op& op) {
  return {op.writes[0].rows,
          op.attributes.as<Pairs>().interleaved ? op.reads[0].cols : op.writes[0].cols};
}

}  // namespace

constinit const Operator operators::swiglu{.name = "swiglu",
                                           .op_class = OpClass::pointwise,
                                           .locality = Locality::pair_local,
                                           .formula = "y = g · sigmoid(g) · u for each pair (g, u)",
                                           .reads = {{"gu", "M", "2N"}},
                                           .write = kY,
                                           .flops = per_output<5>,
                                           .sum_length = one_term,
                                           .reference = compute,
                                           .lower = lower,
                                           .extent = extent,
                                           .gradient = gradient,
                                           .framework = by_layout,
                                           .given_by_gradient = true,
                                           .cheap_again = true,
                                           .stream = StreamCost::exponential,
    .gate = {.activation = operators::silu, .gradient = operators::silu_backward}};

}  // namespace fuseline
