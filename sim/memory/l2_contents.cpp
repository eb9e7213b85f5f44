#include "sim/memory/l2_contents.h"

#include <bit>

namespace fuseline {

void L2Contents::set_hash() {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  std::uint64_t h = static_cast<std::uint64_t>(capacity) ^ pieces.size();
  const auto add = [&h](std::uint64_t word) { h = std::rotl((h ^ word) * kFactor, 29); };
  for (const Piece& p : pieces) {
    add(std::uint64_t{p.tensor} << 32 | std::uint64_t{p.count} << 1 | (p.down ? 1U : 0U));
    add(std::uint64_t{p.row_block} << 32 | p.col_block);
    add(std::uint64_t{std::bit_cast<std::uint32_t>(p.resident)} << 32 |
        std::bit_cast<std::uint32_t>(p.dirty));
  }
  for (const ElementSize element : elements) add(static_cast<std::uint64_t>(element.bits()));
  hash = h;
}

}  // namespace fuseline
