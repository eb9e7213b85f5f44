// Probabilities of the keys that a query sees.
#include <algorithm>
#include <cmath>

#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softmax {
namespace {

using namespace reference;

// Maximum, subtract, exponential, sum, divide; the log-sum-exp takes a logarithm and a sum a row.
Flops count(const Graph& graph, const Op& op) {
  const Flops log_sum_exp(op.writes.size() > 1 ? 2 * op.writes[0].rows : 0);
  return per_visible_pair<5>(graph, op) + log_sum_exp;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> scores = read(g, in, op.reads[0]);
  const View<double> probs = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  for_each_query(a, [&](std::int64_t, std::int64_t, std::int64_t t, std::int64_t row) {
    const Seen seen = visible(a, scores.cols, t);
    double largest = scores(row, seen.begin);
    for (std::int64_t s = seen.begin; s < seen.end; ++s)
      largest = std::max(largest, scores(row, s));
    double sum = 0;
    for (std::int64_t s = seen.begin; s < seen.end; ++s) sum += std::exp(scores(row, s) - largest);
    for (std::int64_t s = 0; s < scores.cols; ++s)
      probs(row, s) =
          s >= seen.begin && s < seen.end ? std::exp(scores(row, s) - largest) / sum : 0.0;
    if (op.writes.size() > 1) write(g, out, op.writes[1])(row, 0) = largest + std::log(sum);
  });
}

void lower(Emitter& e, const Op& op) {
  Value x = e.tile(op.reads[0]);
  if (op.attributes.as<AttentionShape>().causal || op.attributes.as<AttentionShape>().window > 0) {
    const Value masked = e.fresh("x");
    e.emit(Mask{masked, x, op.attributes.as<AttentionShape>()});
    x = masked;
  }
  const Value top = e.row_reduce(reductions::max, x, "m");
  const Value shifted = e.map(maps::sub, {x, top}, "x");
  const Value p = e.map(maps::exp, {shifted}, "p");
  const Value sum = e.row_reduce(reductions::sum, p, "s");
  if (op.writes.size() > 1) {
    const Value log = e.map(maps::log, {sum}, "l");
    e.produce(op.writes[1], e.map(maps::add, {top, log}, "lse"), true);
  }
  const Value inverse = e.map(maps::reciprocal, {sum}, "r");
  e.produce(op.writes[0], e.map(maps::mul, {p, inverse}, "p"));
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  const Operand probs = a.forward_value(op.writes[0]);
  if (const Operand* delta = a.delta(op.writes[0].tensor))
    a.emit("d_softmax", operators::softmax_backward_delta, {probs, a.dy(), *delta}, {a.target(0)},
           op.attributes);
  else
    a.emit("d_softmax", operators::softmax_backward, {probs, a.dy()}, {a.target(0)}, op.attributes);
}

// From the log-sum-exp that the forward pass saved.
void again(Adjoint&, const Op& op, Again& again) {
  if (op.writes.size() < 2) return;
  again.kind = operators::softmax_recompute;
  again.reads.push_back(op.writes[1]);
}

}  // namespace
}  // namespace in_softmax

constinit const Operator operators::softmax{
    .name = "softmax",
    .op_class = OpClass::attention,
    .locality = Locality::full_row,
    .formula = "p = exp(s - max s) / sum exp(s - max s), visible columns",
    .reads = {{"s", "P", "S"}},
    .write = OperandSpec{"p", "P", "S"},
    .flops = in_softmax::count,
    .sum_length = input_columns,
    .reference = in_softmax::compute,
    .lower = in_softmax::lower,
    .extent = widest,
    .gradient = in_softmax::gradient,
    .framework = always<Implementation::row_norm>,
    .also_writes = {"lse", "P", "1"},
    .attention = true,
    .again = in_softmax::again,
    .stream = StreamCost::softmax};

}  // namespace fuseline
