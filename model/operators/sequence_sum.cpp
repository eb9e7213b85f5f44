// The sum over the rows of each sequence: the gradient of what all tokens of a sequence share.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_sequence_sum {
namespace {

using namespace reference;

std::int64_t tokens_of(const Op& op) { return op.attributes.as<Sequences>().tokens; }

Flops count(const Graph& graph, const Op& op) {
  return op.reads.size() > 1 ? per_input<2>(graph, op) : per_input<1>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(tokens_of(op) > 0 && y.rows * tokens_of(op) == x.rows, op.name);
  for (std::int64_t b = 0; b < y.rows; ++b)
    for (std::int64_t n = 0; n < y.cols; ++n) y(b, n) = 0;
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n)
      y(m / tokens_of(op), n) +=
          op.reads.size() > 1 ? x(m, n) * read(g, in, op.reads[1])(m, n) : x(m, n);
}

void lower(Emitter& e, const Op& op) {
  Value x = e.tile(op.reads[0]);
  if (op.reads.size() > 1) x = e.map(maps::mul, {x, e.tile(op.reads[1])}, "p");
  e.emit(SumSequences{x, op.writes[0], tokens_of(op)});
}

std::int64_t terms(const Graph&, const Op& op) { return tokens_of(op); }

}  // namespace
}  // namespace in_sequence_sum

constinit const Operator operators::sequence_sum{
    .name = "sequence_sum",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "y = sum of x (·z) over the rows of each sequence",
    .reads = {kX, {"z", "M", "N", true}},
    .write = OperandSpec{"y", "B", "N"},
    .flops = in_sequence_sum::count,
    .sum_length = in_sequence_sum::terms,
    .reference = in_sequence_sum::compute,
    .lower = in_sequence_sum::lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::framework_reduce>};

}  // namespace fuseline
