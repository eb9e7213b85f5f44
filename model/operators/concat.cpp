// Columns side by side: slices of a tensor's gradient, or what one cache keeps together.
#include <algorithm>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_concat {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<double> y = write(g, out, op.writes[0]);
  std::int64_t begin = 0;
  for (const Operand& operand : op.reads) {
    const View<const double> x = read(g, in, operand);
    FUSELINE_ASSERT(begin + x.cols <= y.cols, op.name);
    for (std::int64_t m = 0; m < x.rows; ++m)
      for (std::int64_t n = 0; n < x.cols; ++n) y(m, begin + n) = x(m, n);
    begin += x.cols;
  }
  FUSELINE_ASSERT(begin == y.cols, op.name);
}

// Each part goes to its columns.
void lower(Emitter& e, const Op& op) {
  Operand to = op.writes[0];
  for (const Operand& part : op.reads) {
    to.cols = part.cols;
    e.produce(to, e.tile(part));
    to.col_begin += part.cols;
  }
}

Extent extent(const Op& op) {
  std::int64_t widest = 0;
  for (const Operand& part : op.reads) widest = std::max(widest, part.cols);
  return {op.writes[0].rows, widest};
}

bool in_parts(const Op&) { return true; }

Attributes called(OperatorCall& c) {
  std::int64_t cols = 0;
  for (std::size_t i = 0; i < c.reads(); ++i) cols += c.read(i).cols;
  c.result(c.read(0).rows, cols);
  return {};
}

}  // namespace
}  // namespace in_concat

constinit const Operator operators::concat{.name = "concat",
                                           .op_class = OpClass::pointwise,
                                           .locality = Locality::tile_local,
                                           .formula = "y = (a, b, c, ..) side by side",
                                           .reads = {{"a", "M", "A"},
                                                     {"b", "M", "B"},
                                                     {"c", "M", "C", true},
                                                     {"d", "M", "D", true},
                                                     {"e", "M", "E", true},
                                                     {"f", "M", "F", true}},
                                           .write = kY,
                                           .flops = per_output<0>,
                                           .sum_length = one_term,
                                           .reference = in_concat::compute,
                                           .lower = in_concat::lower,
                                           .extent = in_concat::extent,
                                           .gradient = no_gradient(kOfAGradient),
                                           .framework = by_layout,
                                           .in_parts = in_concat::in_parts,
                                           .columns = ColumnOrder::side_by_side,
                                           .called = in_concat::called};

}  // namespace fuseline
