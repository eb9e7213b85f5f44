// The rows that a product takes in codes, with a scale for each group of their columns.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/row_codes.h"

namespace fuseline {

namespace in_quantise_groups {
namespace {

std::int64_t group_width(const Op& op) { return row_coding(op).columns; }

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  codes_reference(row_coding(op), g, op, in, out);
}

void lower(Emitter& e, const Op& op) { lower_groups(e, row_coding(op), op); }

}  // namespace
}  // namespace in_quantise_groups

// A framework calls a kernel of its own, as vLLM has one: a group is a load of 16 lanes.
constinit const Operator operators::quantise_groups{
    .name = "quantise_groups",
    .op_class = OpClass::reduction,
    .locality = Locality::head_local,
    .formula = "scale = max |x| of each group of columns / largest code, code = x / scale",
    .reads = {kX},
    .write = OperandSpec{"code", "M", "N"},
    .flops = per_output<3>,
    .sum_length = one_term,
    .reference = in_quantise_groups::compute,
    .lower = in_quantise_groups::lower,
    .extent = widest,
    .gradient = no_gradient("products of codes are not trained"),
    .framework = always<Implementation::vectorized>,
    .also_writes = {"scale", "M", "G"},
    .head_width = in_quantise_groups::group_width};

}  // namespace fuseline
