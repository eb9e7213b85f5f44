// Streams of tokens in one tensor: in every sequence the rows of the first, then those of the
// second.
#include "model/primitives/concat_rows.h"
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_concat_rows {
namespace {

using namespace reference;

RowsOfParts parts_of(const Op& op) {
  RowsOfParts parts{op.attributes.as<JointSequences>().count, {}};
  for (const Operand& part : op.reads) parts.rows.push_back(part.rows / parts.sequences);
  return parts;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const RowsOfParts parts = parts_of(op);
  const View<double> y = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(parts.all() == y.rows, op.name + ": its parts are not its rows");
  for (std::int64_t m = 0; m < y.rows; ++m) {
    const RowsOfParts::Place from = parts.place(m);
    const View<const double> x = read(g, in, op.reads[from.part]);
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = x(from.row, n);
  }
}

void lower(Emitter& e, const Op& op) {
  const Value joined = e.fresh("joint");
  e.emit(ConcatRows{joined, op.reads, op.attributes.as<JointSequences>().count});
  e.produce(op.writes[0], joined);
}

// The gradient of each part is its rows of the gradient.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  const RowsOfParts parts = parts_of(op);
  std::int64_t begin = 0;
  std::int64_t all = 0;
  for (const std::int64_t rows : parts.rows) all += rows;
  for (std::size_t i = 0; i < op.reads.size(); ++i) {
    Operand part = a.dy();
    FUSELINE_ASSERT(part.at == RowRuns{}, op.name);
    part.rows = op.reads[i].rows;
    part.at.begin = begin;
    if (parts.sequences > 1) part.at = {begin, parts.rows[i], all};
    if (a.wants(i)) a.emit("d_" + op.name, operators::cast, {part}, {a.target(i)});
    begin += parts.rows[i];
  }
}

}  // namespace
}  // namespace in_concat_rows

constinit const Operator operators::concat_rows{
    .name = "concat_rows",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = (a, b, c) below each other in every sequence",
    .reads = {{"a", "A", "N"}, {"b", "B", "N"}, {"c", "C", "N", true}},
    .write = kY,
    .flops = per_output<0>,
    .sum_length = one_term,
    .reference = in_concat_rows::compute,
    .lower = in_concat_rows::lower,
    .extent = of_result,
    .gradient = in_concat_rows::gradient,
    .framework = always<Implementation::concat>,
    .alone = "its operands have different rows"};

}  // namespace fuseline
