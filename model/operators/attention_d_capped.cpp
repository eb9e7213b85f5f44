// The gradient of the scores before they were capped.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_attention_d_capped {
namespace {

using namespace reference;

// With capped scores z = c·tanh(s/c), ds = dz·(1 - tanh²(s/c)) = dz·(1 - (z/c)²).
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dz = read(g, in, op.reads[0]);
  const View<const double> z = read(g, in, op.reads[1]);
  const auto& a = op.attributes.as<AttentionShape>();
  map_visible(a, write(g, out, op.writes[0]), [&](std::int64_t row, std::int64_t s) {
    const double part = z(row, s) / a.softcap;
    return dz(row, s) * (1.0 - part * part);
  });
}

void lower(Emitter& e, const Op& op) {
  const double c = op.attributes.as<AttentionShape>().softcap;
  const Value dz = e.tile(op.reads[0]);
  const Value part = e.map(maps::scale_by_constant, {e.tile(op.reads[1])}, "u", 1 / c);
  const Value rest = e.map(maps::negate, {e.map(maps::square, {part}, "q")}, "n");
  const Value slope = e.map(maps::add_constant, {rest}, "v", 1.0);
  e.produce(op.writes[0], e.map(maps::mul, {dz, slope}, "ds"));
}

}  // namespace
}  // namespace in_attention_d_capped

constinit const Operator operators::attention_d_capped{
    .name = "attention_d_capped",
    .op_class = OpClass::attention,
    .locality = Locality::tile_local,
    .formula = "ds = dz·(1 - (z/c)²) of capped scores z, visible columns",
    .reads = {{"dz", "P", "S"}, {"z", "P", "S"}},
    .write = OperandSpec{"ds", "P", "S"},
    .flops = per_visible_pair<4>,
    .sum_length = one_term,
    .reference = in_attention_d_capped::compute,
    .lower = in_attention_d_capped::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .attention = true};

}  // namespace fuseline
