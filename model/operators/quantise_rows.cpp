// The rows that a product takes in codes, with a scale for each.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/row_codes.h"

namespace fuseline {

namespace in_quantise_rows {
namespace {

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  codes_reference(row_coding(op), g, op, in, out);
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value most = e.row_reduce(reductions::max, e.map(maps::absolute, {x}, "a"), "most");
  e.produce(op.writes[1], codes_by_largest(e, row_coding(op), op, x, most), true);
}

}  // namespace
}  // namespace in_quantise_rows

// A framework calls a kernel of its own, as vLLM has one, which walks along a row.
constinit const Operator operators::quantise_rows{
    .name = "quantise_rows",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "scale = max |x| of each row / largest code, code = x / scale",
    .reads = {kX},
    .write = OperandSpec{"code", "M", "N"},
    .flops = per_row<3, 3>,
    .sum_length = one_term,
    .reference = in_quantise_rows::compute,
    .lower = in_quantise_rows::lower,
    .extent = widest,
    .gradient = no_gradient("products of codes are not trained"),
    .framework = always<Implementation::row_norm>,
    .also_writes = {"scale", "M", "1"}};

}  // namespace fuseline
