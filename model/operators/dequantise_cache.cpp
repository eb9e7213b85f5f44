// What the codes of a cache are worth, for attention that takes no codes.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_dequantise_cache {
namespace {

using namespace reference;

std::int64_t head_width(const Op& op) {
  return op.reads[0].cols / op.attributes.as<HeadCount>().heads;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> codes = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const bool scaled = op.reads.size() > 1;
  const View<const double> scale = scaled ? read(g, in, op.reads[1]) : View<const double>{};
  const std::int64_t d = head_width(op);
  for (std::int64_t r = 0; r < y.rows; ++r)
    for (std::int64_t c = 0; c < y.cols; ++c)
      y(r, c) = scaled ? codes(r, c) * scale(r, c / d) : codes(r, c);
}

void lower(Emitter& e, const Op& op) {
  const Value codes = e.tile(op.reads[0]);
  if (op.reads.size() < 2) return e.produce(op.writes[0], e.map(maps::copy, {codes}, "y"));
  const Value scale = e.fresh("scale");
  e.emit(LoadGroups{scale, op.reads[1], head_width(op)});
  e.produce(op.writes[0], e.map(maps::mul, {codes, scale}, "y"));
}

}  // namespace
}  // namespace in_dequantise_cache

constinit const Operator operators::dequantise_cache{
    .name = "dequantise_cache",
    .op_class = OpClass::pointwise,
    .locality = Locality::head_local,
    .formula = "y = codes · scale of each head and key",
    .reads = {{"codes", "M", "N"}, {"scale", "M", "H", true}},
    .write = kY,
    .flops = per_output<1>,
    .sum_length = one_term,
    .reference = in_dequantise_cache::compute,
    .lower = in_dequantise_cache::lower,
    .extent = widest,
    .gradient = no_gradient("a cache is not trained"),
    .framework = always<Implementation::strided>,
    .head_width = in_dequantise_cache::head_width};

}  // namespace fuseline
