// Which operands of attention's steps are the scales of a cache in few bits, and which is the bias:
// both may be there or not, the scales last.
#pragma once

#include <optional>

#include "model/graph.h"
#include "model/operators/attributes.h"

namespace fuseline {

inline bool has_cache_scale(const Op& op) {
  const auto* shape = op.attributes.get<AttentionShape>();
  return shape != nullptr && shape->cache.scaled();
}

// Of attention_scores and attention_context: [B·S, Hkv].
inline std::optional<Operand> cache_scale(const Op& op) {
  if (!has_cache_scale(op)) return std::nullopt;
  return op.reads.back();
}

// Of attention_scores: [H·T, S].
inline std::optional<Operand> score_bias(const Op& scores) {
  const std::size_t others = has_cache_scale(scores) ? 3 : 2;
  if (scores.reads.size() <= others) return std::nullopt;
  return scores.reads[2];
}

}  // namespace fuseline
