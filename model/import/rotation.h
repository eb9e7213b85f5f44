// A rotary embedding in a saved graph: x cos + rotated(x) sin, where `rotated` puts the second of
// every pair, negated, in the place of the first.
#pragma once

#include "model/import/pattern.h"

namespace fuseline {

struct FoundRotation {
  TensorView of{};  // [.., d], or the columns of each head that turn
  std::int64_t width = 0;
  bool adjacent = false;  // pairs are neighbours, not halves
  std::size_t cos = 0;    // nodes that say which table it is
  std::size_t sin = 0;
};

std::optional<FoundRotation> rotation_at(Translator& t, std::size_t at);

// Adds the step for heads of `d` columns, of which the rotation turns the first.
std::optional<TensorView> rotation_step(Translator& t, const FoundRotation& found,
                                        const TensorView& whole, std::int64_t d);

}  // namespace fuseline
