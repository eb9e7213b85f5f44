// New keys or values, written behind those of the cache as codes, with a scale for each head.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/cache_formats/stored_cache.h"
#include "model/config/code_table.h"
#include "model/formats/least_scale.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace {

using namespace reference;

std::int64_t head_width(const Op& op) {
  const std::int64_t heads = op.attributes.as<ScaledHeads>().heads;
  FUSELINE_ASSERT(op.reads[0].cols % heads == 0, op.name + " has no whole heads");
  return op.reads[0].cols / heads;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> cache = write(g, out, op.writes[0]);
  const View<double> scale = write(g, out, op.writes[1]);
  const CodeTable& codes = code_table(g.tensor(op.writes[0].tensor).dtype);
  const double largest = op.attributes.as<ScaledHeads>().cache.largest();
  const std::int64_t d = head_width(op);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t first = 0; first < x.cols; first += d) {
      double magnitude = 0;
      for (std::int64_t c = first; c < first + d; ++c)
        magnitude = std::max(magnitude, std::fabs(x(r, c)));
      const double s = std::max(magnitude / largest, kLeastScale);
      scale(r, first / d) = s;
      for (std::int64_t c = first; c < first + d; ++c) cache(r, c) = codes.rounded(x(r, c) / s);
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const std::int64_t d = head_width(op);
  const Value x = e.tile(op.reads[0]);
  const Value a = e.map(maps::absolute, {x}, "a");
  const Value most = e.group_reduce(reductions::max, a, d, "most");
  const Value part = e.map(maps::scale_by_constant, {most}, "s",
                           1.0 / op.attributes.as<ScaledHeads>().cache.largest());
  const Value s = e.map(maps::at_least, {part}, "s", kLeastScale);
  const Value inverse = e.map(maps::reciprocal, {s}, "inverse");
  e.produce(op.writes[0], e.map(maps::mul, {x, inverse}, "code"));
  e.emit(StoreGroups{s, op.writes[1], d});  // of a cache, which is always stored
}

}  // namespace

constinit const Operator operators::cache_append_scaled{
    .name = "cache_append_scaled",
    .op_class = OpClass::pointwise,
    .locality = Locality::head_local,
    .formula = "scale = max |x| of each head / largest code, cache = x / scale: the last T rows",
    .reads = {kX},
    .write = OperandSpec{"cache", "M", "N"},
    .flops = per_output<3>,
    .sum_length = one_term,
    .reference = compute,
    .lower = lower,
    .extent = widest,
    .gradient = no_gradient("a cache is not trained"),
    .framework = always<Implementation::strided>,
    .also_writes = {"scale", "M", "H"},
    .head_width = head_width,
    .appends = true,
    .before_attention = true};

}  // namespace fuseline
