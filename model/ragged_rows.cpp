#include "model/ragged_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"

namespace fuseline {

namespace {

// The probability that a group has `count` of `rows` rows.
double binomial(std::int64_t rows, std::int64_t count, double p) {
  if (p >= 1) return count == rows ? 1 : 0;
  const auto n = static_cast<double>(rows);
  const auto k = static_cast<double>(count);
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                  k * std::log(p) + (n - k) * std::log1p(-p));
}

// Numbers of rows at the middles of equal shares of the probability of having any, the longest
// first.
std::vector<std::int64_t> quantiles(std::int64_t rows, double p, std::int64_t active) {
  const double none = binomial(rows, 0, p);
  std::vector<std::int64_t> lengths;
  std::int64_t count = 1;
  double below = binomial(rows, 1, p) / (1 - none);
  for (std::int64_t i = 0; i < active; ++i) {
    const double wanted = (static_cast<double>(i) + 0.5) / static_cast<double>(active);
    while (below < wanted && count < rows) below += binomial(rows, ++count, p) / (1 - none);
    lengths.push_back(count);
  }
  std::ranges::sort(lengths, std::greater<>());
  return lengths;
}

}  // namespace

RaggedRows assumed_rows(std::int64_t rows, std::int64_t groups, std::int64_t each) {
  FUSELINE_ASSERT(rows > 0 && each > 0 && groups >= each, "rows in groups");
  const auto e = static_cast<double>(groups);
  const double p = static_cast<double>(each) / e;
  const double expected = e * (1 - std::pow(1 - p, static_cast<double>(rows)));
  const std::int64_t active =
      std::clamp<std::int64_t>(std::llround(expected), each, std::min(rows * each, groups));
  RaggedRows result{quantiles(rows, p, active), true};
  // Rounding leaves a few rows too many or too few: one each, from the longest on.
  std::int64_t left = rows * each;
  for (const std::int64_t length : result.groups) left -= length;
  for (std::size_t i = 0; left != 0; i = (i + 1) % result.groups.size()) {
    if (result.groups[i] == (left < 0 ? 1 : rows)) continue;
    result.groups[i] += left > 0 ? 1 : -1;
    left += left > 0 ? -1 : 1;
  }
  std::ranges::sort(result.groups, std::greater<>());
  return result;
}

}  // namespace fuseline
