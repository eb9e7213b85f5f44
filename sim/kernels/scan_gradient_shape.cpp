#include "sim/kernels/scan_gradient_shape.h"

#include <algorithm>
#include <bit>

#include "base/units.h"

namespace fuseline {

namespace {

constexpr std::int64_t kWarpOfGradient = 32;
constexpr std::int64_t kVectorOfGradient = 8;  // that a copy of 16 bytes moves
constexpr std::int64_t kMostThreads = 256;     // with 255 registers each
constexpr std::int64_t kManyThreads = 128;
constexpr std::int64_t kMostColumns = 64;  // of a block, whose operands lie in shared memory
constexpr std::int64_t kNumbersOfTile =
    32;  // numbers of states in a thread, and tokens that it keeps

std::int64_t next_power(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

std::int64_t whole_vectors(std::int64_t cols) {
  return ceil_div(cols, kVectorOfGradient) * kVectorOfGradient;
}

// The largest power of two that divides n, `most` at most.
std::int64_t power_in(std::int64_t n, std::int64_t most) {
  std::int64_t power = 1;
  while (2 * power <= most && n % (2 * power) == 0) power *= 2;
  return power;
}

}  // namespace

std::int64_t ScanGradientLayout::shared_bytes() const {
  const std::int64_t rows = threads / lanes, state = std::int64_t{lanes} * numbers;
  const std::int64_t cols = whole_vectors(rows * columns), keys = whole_vectors(state);
  const std::int64_t parts = std::int64_t{together} * 2 * (threads / kWarpOfGradient) * state;
  return 4 *
         (scan_segment_tokens * (4 * cols + 2 * keys + 2 * heads) + std::max(parts, rows * state));
}

std::optional<ScanGradientLayout> scan_gradient_layout(const ScanMainloop& scan) {
  const ScanShape& s = scan.shape;
  ScanGradientLayout l;
  while (ceil_div(s.state_width, l.numbers) > kWarpOfGradient) l.numbers *= 2;
  if (l.numbers > 8) return {};
  l.lanes = static_cast<int>(next_power(ceil_div(s.state_width, l.numbers)));
  l.columns = static_cast<int>(power_in(s.head_width, kNumbersOfTile / l.numbers));
  std::optional<ScanGradientLayout> chosen;
  const std::int64_t sharing = s.heads / s.groups;
  for (std::int64_t heads = 1; heads <= sharing; ++heads) {
    const std::int64_t cols = heads * s.head_width;
    const bool whole = cols % kVectorOfGradient == 0 || heads == s.heads;
    const std::int64_t threads =
        ceil_div(cols / l.columns * l.lanes, kWarpOfGradient) * kWarpOfGradient;
    if (sharing % heads != 0 || !whole || threads > kMostThreads) continue;
    if (chosen && (cols > kMostColumns || threads > kManyThreads)) break;
    l.heads = static_cast<int>(heads);
    l.threads = static_cast<int>(threads);
    chosen = l;
  }
  return chosen;
}

std::int64_t scan_segments(const ScanMainloop& scan) {
  const std::int64_t piece = scan.shape.kept_tokens(scan.has_rates_of_columns());
  return ceil_div(std::min(piece, scan.shape.tokens), scan_segment_tokens);
}

std::int64_t scan_gradient_blocks(const ScanMainloop& scan, const ScanGradientLayout& layout) {
  return scan.shape.batch * scan.shape.heads / layout.heads;
}

}  // namespace fuseline
