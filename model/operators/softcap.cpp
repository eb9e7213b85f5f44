// Values limited to ±c without an edge, as Gemma 2 limits its logits.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softcap {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const double c = op.attributes.as<Scalar>().value;
  map(g, op, in, out, [c](double x) { return c * std::tanh(x / c); });
}

void lower(Emitter& e, const Op& op) {
  const double c = op.attributes.as<Scalar>().value;
  const Value x = e.tile_or_row(op.reads[0]);
  const Value t = e.map(maps::tanh, {e.map(maps::scale_by_constant, {x}, "u", 1 / c)}, "t");
  e.produce(op.writes[0], e.map(maps::scale_by_constant, {t}, "y", c));
}

// logits / c, tanh, and times c; a compiler has one loop for the three.
FrameworkLaunches framework_launches(const Graph& graph, const Op& op, bool generated) {
  if (generated) return {};
  const Operand& x = op.reads[0];
  const Dtype type = graph.tensor(x.tensor).dtype;
  const Scratch ratio{"ratio", x.rows, x.cols, type};
  const Scratch limited{"limited", x.rows, x.cols, type};
  LaunchList list;
  list.add("divide", Implementation::vectorized, {x}, {ratio});
  list.add("tanh", Implementation::vectorized, {ratio}, {limited});
  list.add("multiply", Implementation::vectorized, {limited}, {op.writes[0]});
  return std::move(list).instead();
}

void gradient(Adjoint& a) { element_wise_gradient(a, operators::softcap_backward); }

Attributes called(OperatorCall& c) { return Scalar{c.number_or("cap", 30, 1e-3, 1e9)}; }

}  // namespace
}  // namespace in_softcap

constinit const Operator operators::softcap{.name = "softcap",
                                            .op_class = OpClass::pointwise,
                                            .locality = Locality::tile_local,
                                            .formula = "y = c·tanh(x/c)",
                                            .reads = {kX},
                                            .write = kY,
                                            .flops = per_output<3>,
                                            .sum_length = one_term,
                                            .reference = in_softcap::compute,
                                            .lower = in_softcap::lower,
                                            .extent = widest,
                                            .gradient = in_softcap::gradient,
                                            .framework = by_layout,
                                            .stream = StreamCost::exponential,
                                            .framework_launches = in_softcap::framework_launches,
                                            .called = in_softcap::called};

}  // namespace fuseline
