// The sum of some columns of every head: the gradient of columns that all heads share.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_head_part_sum {
namespace {

using namespace reference;

std::int64_t heads_of(const Op& op) {
  return op.reads[0].cols / op.attributes.as<HeadPart>().part.group;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const ColumnPart& part = op.attributes.as<HeadPart>().part;
  FUSELINE_ASSERT(part.fits(x.cols) && part.count == y.cols, op.name);
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t c = 0; c < y.cols; ++c) {
      double sum = 0;
      for (std::int64_t head = 0; head < heads_of(op); ++head)
        sum += x(m, part.column(head * part.count + c));
      y(m, c) = sum;
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const ColumnPart& part = op.attributes.as<HeadPart>().part;
  const Value x = e.part(op.reads[0], part, "part");
  const Value sum = e.fresh("sum");
  e.emit(HeadSum{sum, x, heads_of(op), part.count});
  e.produce(op.writes[0], sum);
}

Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(op.writes[0].rows, op.writes[0].cols, heads_of(op) - 1);
}

std::int64_t terms(const Graph&, const Op& op) { return heads_of(op); }

}  // namespace
}  // namespace in_head_part_sum

constinit const Operator operators::head_part_sum{
    .name = "head_part_sum",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "y = sum over the heads of some columns of each",
    .reads = {{"x", "M", "W"}},
    .write = OperandSpec{"y", "M", "C"},
    .flops = in_head_part_sum::count,
    .sum_length = in_head_part_sum::terms,
    .reference = in_head_part_sum::compute,
    .lower = in_head_part_sum::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::framework_reduce>,
    .part_read = 0,
    .alone = "needs all heads",
    .columns = ColumnOrder::part_of_heads};

}  // namespace fuseline
