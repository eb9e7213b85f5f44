// Some columns of every head behind each other, or their sum over the heads: the gradients of the
// two parts that join_heads puts together.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_head_part {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const ColumnPart& part = op.attributes.as<HeadPart>().part;
  FUSELINE_ASSERT(part.fits(x.cols) && part.cols(x.cols) == y.cols, op.name);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t c = 0; c < y.cols; ++c) y(m, c) = x(m, part.column(c));
}

void lower(Emitter& e, const Op& op) {
  e.produce(op.writes[0], e.part(op.reads[0], op.attributes.as<HeadPart>().part, "part"));
}

}  // namespace
}  // namespace in_head_part

constinit const Operator operators::head_part{.name = "head_part",
                                              .op_class = OpClass::pointwise,
                                              .locality = Locality::pair_local,
                                              .formula = "y = some columns of each head of x",
                                              .reads = {{"x", "M", "W"}},
                                              .write = OperandSpec{"y", "M", "C"},
                                              .flops = per_output<0>,
                                              .sum_length = one_term,
                                              .reference = in_head_part::compute,
                                              .lower = in_head_part::lower,
                                              .extent = of_result,
                                              .gradient = no_gradient(kOfAGradient),
                                              .framework = always<Implementation::strided>,
                                              .part_read = 0,
                                              .alone = "takes heads apart",
                                              .columns = ColumnOrder::part_of_heads};

}  // namespace fuseline
