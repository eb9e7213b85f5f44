// Factors by position and column of a head.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_mul_table {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x * z; });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value t = e.table(op.reads[1]);
  e.produce(op.writes[0], e.map(maps::mul, {x, t}, "y"));
}

}  // namespace
}  // namespace in_mul_table

constinit const Operator operators::mul_table{.name = "mul_table",
                                              .op_class = OpClass::pointwise,
                                              .locality = Locality::tile_local,
                                              .formula = "y = x · table[row mod T, column mod d]",
                                              .reads = {kX, {"table", "T", "d"}},
                                              .write = kY,
                                              .flops = per_output<1>,
                                              .sum_length = one_term,
                                              .reference = in_mul_table::compute,
                                              .lower = in_mul_table::lower,
                                              .extent = widest,
                                              .gradient = no_gradient(kMadeLater),
                                              .framework = always<Implementation::strided>};

}  // namespace fuseline
