// A norm's scale of every row, deferred past a GEMM.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_row_scale {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x * z; });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value r = e.per_row(op.reads[1], "r");
  e.produce(op.writes[0], e.map(maps::mul, {x, r}, "y"));
}

}  // namespace
}  // namespace in_row_scale

constinit const Operator operators::row_scale{.name = "row_scale",
                                              .op_class = OpClass::pointwise,
                                              .locality = Locality::tile_local,
                                              .formula = "y = x · r, r one value a row",
                                              .reads = {kX, {"r", "M", "1"}},
                                              .write = kY,
                                              .flops = per_output<1>,
                                              .sum_length = one_term,
                                              .reference = in_row_scale::compute,
                                              .lower = in_row_scale::lower,
                                              .extent = widest,
                                              .gradient = no_gradient(kMadeLater),
                                              .framework = by_layout};

}  // namespace fuseline
