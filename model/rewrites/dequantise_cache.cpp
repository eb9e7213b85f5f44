#include "model/rewrites/dequantise_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/operators/all_operators.h"
#include "model/operators/support/cache_scales.h"

namespace fuseline {

namespace in_dequantise_cache {
namespace {

// Keys or values: the second operand of the scores, and of the context.
bool reads_codes(const Op& op) {
  if (op.kind != operators::attention_scores && op.kind != operators::attention_context)
    return false;
  return op.attributes.as<AttentionShape>().cache.quantised();
}

bool applies(const Graph& graph) { return std::ranges::any_of(graph.ops(), reads_codes); }

bool with_numbers(const Op& op, Graph& to) {
  if (!reads_codes(op)) return false;
  AttentionShape shape = op.attributes.as<AttentionShape>();
  const Operand codes = op.reads[1];
  const std::string what = op.kind == operators::attention_scores ? "_keys" : "_values";
  const Operand worth =
      to.whole(add_activation(to, op.name + what, "[B·S, Hkv·d]",
                              to.tensor(op.reads[0].tensor).dtype, codes.rows, codes.cols));
  Op dequantised{op.name + "_dequantise",
                 operators::dequantise_cache,
                 {codes},
                 {worth},
                 HeadCount{shape.kv_heads},
                 op.site,
                 op.pass};
  if (const auto scale = cache_scale(op)) dequantised.reads.push_back(*scale);
  to.add_op(std::move(dequantised));
  Op step = op;
  step.reads[1] = worth;
  if (shape.cache.scaled()) step.reads.pop_back();
  shape.cache = {};
  step.attributes = shape;
  to.add_op(std::move(step));
  return true;
}

}  // namespace
}  // namespace in_dequantise_cache

Rewrite dequantise_cache() {
  return {"dequantise_cache", "codes of a cache become numbers before attention's products",
          in_dequantise_cache::applies, [](Block& block) {
            block.graph = replace_ops(block.graph, in_dequantise_cache::with_numbers);
          }};
}

}  // namespace fuseline
