// New keys or values, written behind those of the cache.
#include "model/config/code_table.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_cache_append {
namespace {

using namespace reference;

// What is kept in few bits becomes the nearest code, in the reference too: the numbers that
// attention finds are then those of the format.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> cache = write(g, out, op.writes[0]);
  const Dtype type = g.tensor(op.writes[0].tensor).dtype;
  const CodeTable* codes = size_of(type).bits() <= 8 ? &code_table(type) : nullptr;
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < x.cols; ++c)
      cache(r, c) = codes == nullptr ? x(r, c) : codes->rounded(x(r, c));
}

void lower(Emitter& e, const Op& op) { e.produce(op.writes[0], e.tile(op.reads[0])); }

}  // namespace
}  // namespace in_cache_append

constinit const Operator operators::cache_append{
    .name = "cache_append",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "cache[last T rows of each sequence] = x",
    .reads = {kX},
    .write = OperandSpec{"cache", "M", "N"},
    .flops = per_output<0>,
    .sum_length = one_term,
    .reference = in_cache_append::compute,
    .lower = in_cache_append::lower,
    .extent = widest,
    .gradient = no_gradient("a cache is not trained"),
    .framework = always<Implementation::strided>,
    .appends = true,
    .before_attention = true};

}  // namespace fuseline
