// The size at which a choice turns from a loss into a gain, or back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace fuseline {

struct SizeRange {
  std::int64_t least = 1, asked = 1, most = 1;
};

// Sizes to look at first: `asked`, and from there steps of four times down to `least` and up to
// `most`, which are among them. Ascending, each once.
std::vector<std::int64_t> sizes_in(const SizeRange& range);

struct Turning {
  SizeRange searched{};
  std::optional<std::int64_t> at{};  // the first size that was found on the other side; empty: none
  bool gains_above = false;          // the sizes from `at` on gain, those below lose
  int turns = 0;                     // how often the sizes that were looked at first change sides
};

// What a choice gains at a size: above 1 it is faster. Empty where it cannot be made.
using GainAt = std::function<std::optional<double>(std::int64_t size)>;

// The turn that lies nearest to the asked size, as a ratio, narrowed by bisection until the two
// sides are neighbours, or 3 % apart. Sizes at which the choice cannot be made, or changes nothing,
// are on neither side.
Turning find_turning(const SizeRange& range, const GainAt& gain);

}  // namespace fuseline
