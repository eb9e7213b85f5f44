// The rows that a product takes in codes, with a scale for each group of their columns.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/row_codes.h"

namespace fuseline {

namespace {

void lower(Emitter& e, const Op& op) {
  const std::int64_t width = coded_columns(op);
  const Value x = e.tile(op.reads[0]);
  const Value a = e.map(maps::absolute, {x}, "a");
  const Value s = codes_by_largest(e, op, x, e.group_reduce(reductions::max, a, width, "most"));
  e.emit(StoreGroups{s, op.writes[1], width});  // products, which are other kernels, read them
}

}  // namespace

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
    .reference = row_codes_reference,
    .lower = lower,
    .extent = widest,
    .gradient = no_gradient("products of codes are not trained"),
    .framework = always<Implementation::vectorized>,
    .also_writes = {"scale", "M", "G"},
    .head_width = coded_columns};

}  // namespace fuseline
