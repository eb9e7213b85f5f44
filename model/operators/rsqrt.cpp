// Y = 1 / sqrt(x).
#include <cmath>

#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_rsqrt {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return 1.0 / std::sqrt(x); });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::rsqrt, "r"); }

}  // namespace
}  // namespace in_rsqrt

constinit const Operator operators::rsqrt{.name = "rsqrt",
                                          .op_class = OpClass::pointwise,
                                          .locality = Locality::tile_local,
                                          .formula = "y = 1 / sqrt(x)",
                                          .reads = {kX},
                                          .write = kY,
                                          .flops = per_output<1>,
                                          .sum_length = one_term,
                                          .reference = in_rsqrt::compute,
                                          .lower = in_rsqrt::lower,
                                          .extent = widest,
                                          .gradient = no_gradient(kMadeLater),
                                          .framework = by_layout};

}  // namespace fuseline
