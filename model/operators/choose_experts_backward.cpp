// The gradient of the scores that gates were made of. Which experts were chosen is a constant of
// the step, as it is in every framework.
#include "model/expert_routing.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_choose_experts_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> d_gates = read(g, in, op.reads[0]);
  const View<const double> scores = read(g, in, op.reads[1]);
  const View<const double> chosen = read(g, in, op.reads[2]);
  const View<double> d_scores = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<ExpertChoice>();
  for (std::int64_t m = 0; m < scores.rows; ++m) {
    std::vector<std::int64_t> experts;
    std::vector<double> dg;
    for (std::int64_t j = 0; j < a.count; ++j) {
      experts.push_back(static_cast<std::int64_t>(chosen(m, j)));
      dg.push_back(d_gates(m, j));
    }
    const std::vector<double> row = score_gradients(
        a, scores.cols, [&](std::int64_t e) { return scores(m, e); }, experts, dg);
    for (std::int64_t e = 0; e < scores.cols; ++e)
      d_scores(m, e) = row[static_cast<std::size_t>(e)];
  }
}

void lower(Emitter& e, const Op& op) {
  const Value d_gates = e.tile(op.reads[0]);
  const Value scores = e.tile(op.reads[1]);
  const Value chosen = e.tile(op.reads[2]);
  const Value d_scores = e.fresh("d_scores");
  e.emit(
      ChooseExpertsGradient{d_scores, d_gates, scores, chosen, op.attributes.as<ExpertChoice>()});
  e.produce(op.writes[0], d_scores);
}

RowMainloop rows(const Op& op) { return {op.reads[1].rows, op.reads[1].cols}; }

// The weights of all scores again (2 each) and their products with t, and t: 2 for each gate.
Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(op.reads[1].rows, op.reads[1].cols, 4) +
         checked_product<Flops>(op.reads[0].rows, op.reads[0].cols, 4);
}

std::int64_t terms(const Graph&, const Op& op) { return op.reads[1].cols; }

Extent extent(const Op& op) { return {op.reads[1].rows, op.reads[1].cols}; }

// The gradient of the gates' weights, zeros, numbers put where the chosen experts are, and a
// conversion from fp32. A compiler has one loop for all but the zeros.
FrameworkLaunches framework_launches(const Graph&, const Op&, bool generated) {
  LaunchList list;
  list.add_short({"zeros"});
  if (!generated) list.add_short({"scatter", "convert"});
  return std::move(list).beside();
}

}  // namespace
}  // namespace in_choose_experts_backward

constinit const Operator operators::choose_experts_backward{
    .name = "choose_experts_backward",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "gradient of the scores by that of the gates, the choice as it was",
    .reads = {{"dgates", "M", "K"}, {"scores", "M", "E"}, {"chosen", "M", "K"}},
    .write = OperandSpec{"dscores", "M", "E"},
    .flops = in_choose_experts_backward::count,
    .sum_length = in_choose_experts_backward::terms,
    .reference = in_choose_experts_backward::compute,
    .lower = in_choose_experts_backward::lower,
    .extent = in_choose_experts_backward::extent,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::framework_reduce>,
    .index_read = 2,
    .index_range = [](const Graph&, const Op& op) { return op.reads[1].cols; },
    .rows = in_choose_experts_backward::rows,
    .framework_launches = in_choose_experts_backward::framework_launches};

}  // namespace fuseline
