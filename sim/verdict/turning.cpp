#include "sim/verdict/turning.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline {

namespace {

constexpr std::int64_t kStep = 4;
constexpr std::int64_t kResolution = 32;  // sizes closer than a 32nd are one
// Two plans whose kernels are the same differ by less.
constexpr double kNoChange = 1e-9;

// 1: a gain, -1: a loss, 0: neither.
int side(const std::optional<double>& gain) {
  if (!gain || std::abs(*gain - 1) < kNoChange) return 0;
  return *gain > 1 ? 1 : -1;
}

std::int64_t between(std::int64_t low, std::int64_t high) {
  const double middle = std::sqrt(static_cast<double>(low) * static_cast<double>(high));
  return std::clamp(static_cast<std::int64_t>(std::llround(middle)), low + 1, high - 1);
}

double distance(std::int64_t size, std::int64_t asked) {
  return std::abs(std::log(static_cast<double>(size) / static_cast<double>(asked)));
}

}  // namespace

std::vector<std::int64_t> sizes_in(const SizeRange& range) {
  std::vector<std::int64_t> sizes = {range.least, range.asked, range.most};
  for (std::int64_t s = range.asked / kStep; s > range.least; s /= kStep) sizes.push_back(s);
  for (std::int64_t s = range.asked * kStep; s < range.most; s *= kStep) sizes.push_back(s);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Turning find_turning(const SizeRange& range, const GainAt& gain) {
  struct Bracket {
    std::int64_t low, high;
    int above;
  };
  Turning out{.searched = range};
  std::optional<Bracket> nearest;
  std::optional<std::pair<std::int64_t, int>> last;  // the last size that is on a side
  const auto away = [&](const Bracket& b) {
    if (b.low <= range.asked && range.asked <= b.high) return 0.0;
    return std::min(distance(b.low, range.asked), distance(b.high, range.asked));
  };
  for (const std::int64_t size : sizes_in(range)) {
    const int here = side(gain(size));
    if (here == 0) continue;
    if (last && last->second != here) {
      ++out.turns;
      const Bracket found{last->first, size, here};
      if (!nearest || away(found) < away(*nearest)) nearest = found;
    }
    last = {size, here};
  }
  if (!nearest) return out;
  auto [low, high, above] = *nearest;
  while (high - low > std::max<std::int64_t>(1, low / kResolution)) {
    const std::int64_t middle = between(low, high);
    (side(gain(middle)) == above ? high : low) = middle;
  }
  out.at = high;
  out.gains_above = above > 0;
  return out;
}

}  // namespace fuseline
