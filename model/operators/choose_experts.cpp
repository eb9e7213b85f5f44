// The experts of every row and their gates. A plan has to know how many rows each expert gets, so
// a block's text assumes what even routing gives (model/ragged_rows.h); which rows then go where is
// a fixed pattern, and the gates alone depend on the data.
#include "model/config/config.h"
#include "model/expert_routing.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"
#include "model/ragged_rows.h"

namespace fuseline {

namespace in_choose_experts {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> gates = write(g, out, op.writes[0]);
  const View<double> chosen = write(g, out, op.writes[1]);
  const auto& a = op.attributes.as<ExpertChoice>();
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const RoutedRow row = route_row(a, m, x.cols, [&](std::int64_t e) { return x(m, e); });
    for (std::int64_t j = 0; j < a.count; ++j) {
      gates(m, j) = row.gates[static_cast<std::size_t>(j)];
      chosen(m, j) = static_cast<double>(row.experts[static_cast<std::size_t>(j)]);
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const Value scores = e.tile(op.reads[0]);
  const Value gates = e.fresh("gates");
  const Value chosen = e.fresh("chosen");
  e.emit(ChooseExperts{gates, chosen, scores, op.attributes.as<ExpertChoice>()});
  e.produce(op.writes[0], gates);
  e.produce(op.writes[1], chosen);
}

Attributes called(OperatorCall& c) {
  ExpertChoice a;
  const Operand& x = c.read(0);
  a.count = c.whole("count", 1, x.cols);
  const std::string weights = c.word_or("weights", {"softmax", "softmax_of_all", "sigmoid"});
  a.weights = weights == "sigmoid"          ? GateWeights::sigmoid
              : weights == "softmax_of_all" ? GateWeights::softmax_of_all
                                            : GateWeights::softmax;
  a.factor = c.number_or("factor", 1, 1e-6, 1e6);
  a.loads = routed_rows(c.workload().routing, x.rows, x.cols, a.count);
  c.result(x.rows, a.count);
  c.result_in(Dtype::fp32);
  c.also_result(x.rows, a.count, Dtype::fp32);
  return a;
}

// A conversion to fp32, a selection in every row and a sort of what it found, and the gates.
FrameworkLaunches framework_launches(const Graph&, const Op& op, bool generated) {
  LaunchList list;
  const Scratch chosen{"chosen", op.writes[0].rows, op.writes[0].cols, Dtype::fp32};
  if (!generated) list.add_short({"convert"});
  list.add("select", Implementation::framework_select, {op.reads[0]}, {chosen});
  list.add("order", Implementation::framework_order, {chosen}, {chosen});
  list.add_short({"gates"});
  return std::move(list).instead();
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  a.emit("d_" + op.name, operators::choose_experts_backward,
         {a.dy(), a.forward_value(op.reads[0]), a.forward_value(op.writes[1])}, {a.target(0)},
         op.attributes);
}

}  // namespace
}  // namespace in_choose_experts

constinit const Operator operators::choose_experts{
    .name = "choose_experts",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "gates of the experts of each row, and which they are",
    .reads = {{"scores", "M", "E"}},
    .write = OperandSpec{"gates", "M", "K"},
    .flops = per_input<1>,
    .sum_length = one_term,
    .reference = in_choose_experts::compute,
    .lower = in_choose_experts::lower,
    .extent = of_operand,
    .gradient = in_choose_experts::gradient,
    .framework = always<Implementation::framework_reduce>,
    .also_writes = {"chosen", "M", "K"},
    .framework_launches = in_choose_experts::framework_launches,
    .called = in_choose_experts::called};

}  // namespace fuseline
