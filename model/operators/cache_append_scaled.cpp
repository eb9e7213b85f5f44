// New keys or values, written behind those of the cache as codes, with a scale for each head.
#include "base/error.h"
#include "model/cache_formats/stored_cache.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/row_codes.h"

namespace fuseline {

namespace in_cache_append_scaled {
namespace {

std::int64_t head_width(const Op& op) {
  const std::int64_t heads = op.attributes.as<ScaledHeads>().heads;
  FUSELINE_ASSERT(op.reads[0].cols % heads == 0, op.name + " has no whole heads");
  return op.reads[0].cols / heads;
}

Coding coding(const Op& op) {
  return {op.attributes.as<ScaledHeads>().cache.largest(), head_width(op)};
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  codes_reference(coding(op), g, op, in, out);
}

void lower(Emitter& e, const Op& op) { lower_groups(e, coding(op), op); }

}  // namespace
}  // namespace in_cache_append_scaled

constinit const Operator operators::cache_append_scaled{
    .name = "cache_append_scaled",
    .op_class = OpClass::pointwise,
    .locality = Locality::head_local,
    .formula = "scale = max |x| of each head / largest code, cache = x / scale: the last T rows",
    .reads = {kX},
    .write = OperandSpec{"cache", "M", "N"},
    .flops = per_output<3>,
    .sum_length = one_term,
    .reference = in_cache_append_scaled::compute,
    .lower = in_cache_append_scaled::lower,
    .extent = widest,
    .gradient = no_gradient("a cache is not trained"),
    .framework = always<Implementation::strided>,
    .also_writes = {"scale", "M", "H"},
    .head_width = in_cache_append_scaled::head_width,
    .appends = true,
    .before_attention = true};

}  // namespace fuseline
