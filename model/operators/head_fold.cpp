// Vectors that all heads share: the sum of the gradients that the heads give.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/head_norm.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_head_fold {
namespace {

using namespace reference;

Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(op.reads[0].rows, op.reads[0].cols - op.writes[0].cols);
}

std::int64_t heads(const Graph&, const Op& op) { return op.reads[0].cols / op.writes[0].cols; }

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(x.cols % y.cols == 0, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n % y.cols) += x(m, n);
  }
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value y = e.fresh("sum");
  e.emit(HeadSum{y, x, heads(e.graph(), op), op.writes[0].cols});
  e.produce(op.writes[0], y);
}

}  // namespace
}  // namespace in_head_fold

constinit const Operator operators::head_fold{.name = "head_fold",
                                              .op_class = OpClass::reduction,
                                              .locality = Locality::full_row,
                                              .formula = "y = sum of all heads of a row",
                                              .reads = {{"x", "M", "Q"}},
                                              .write = OperandSpec{"y", "M", "d"},
                                              .flops = in_head_fold::count,
                                              .sum_length = in_head_fold::heads,
                                              .reference = in_head_fold::compute,
                                              .lower = in_head_fold::lower,
                                              .extent = widest,
                                              .gradient = no_gradient(kOfAGradient),
                                              .framework = always<Implementation::framework_reduce>,
                                              .alone = "needs all heads of a row",
                                              .columns = ColumnOrder::lost};

}  // namespace fuseline
