// The gradient of a gathered table.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/rows.h"

namespace fuseline {

namespace in_embedding_backward {
namespace {

using namespace reference;

// Without ids, row m belongs to position m mod T.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<double> dw = write(g, out, op.writes[0]);
  for (std::int64_t v = 0; v < dw.rows; ++v)
    for (std::int64_t n = 0; n < dw.cols; ++n) dw(v, n) = 0;
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    const std::int64_t row = op.reads.size() > 1
                                 ? index_at(read(g, in, op.reads[1]), m, dw.rows, op)
                                 : m % op.attributes.as<Positions>().tokens;
    for (std::int64_t n = 0; n < dy.cols; ++n) dw(row, n) += dy(m, n);
  }
}

// Of a table gathered by token, or by position: the operands' rows repeat.
void lower(Emitter& e, const Op& op) {
  const Value sum = e.fresh("sum");
  GatherSum gather{sum, std::nullopt, op.reads[0]};
  if (op.reads.size() > 1)
    gather.ids = op.reads[1];
  else
    gather.period = op.attributes.as<Positions>().tokens;
  e.emit(gather);
  e.produce(op.writes[0], sum);
}

std::int64_t indices(const Graph&, const Op& op) { return op.writes[0].rows; }

}  // namespace
}  // namespace in_embedding_backward

constinit const Operator operators::embedding_backward{
    .name = "embedding_backward",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "dw[v] = sum of the rows dy[m] with ids[m] = v, or with m mod T = v",
    .reads = {kDy, {"ids", "M", "1", true}},
    .write = OperandSpec{"dw", "V", "N"},
    .flops = per_input<1>,
    .sum_length = input_rows,
    .reference = in_embedding_backward::compute,
    .lower = in_embedding_backward::lower,
    .extent = of_result,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .index_read = 1,
    .index_range = in_embedding_backward::indices,
    .alone = kGathers,
    .scatters = true};

}  // namespace fuseline
