#include "model/ragged_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

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

namespace {

[[noreturn]] void refuse_loads(const RoutingLoads& routing, const std::string& message,
                               const std::string& allowed) {
  throw InputError({.file = routing.name, .message = message, .allowed = allowed});
}

// Shares of `all` rows as whole numbers that add up to it.
std::vector<std::int64_t> whole_rows(const std::vector<double>& shares, std::int64_t all) {
  std::vector<std::int64_t> lengths;
  std::vector<std::size_t> order;
  std::vector<double> rests;
  std::int64_t left = all;
  for (const double share : shares) {
    const double wanted = share * static_cast<double>(all);
    lengths.push_back(static_cast<std::int64_t>(std::floor(wanted)));
    rests.push_back(wanted - std::floor(wanted));
    order.push_back(order.size());
    left -= lengths.back();
  }
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return rests[a] > rests[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++lengths[order[i]];
  return lengths;
}

}  // namespace

RaggedRows routed_rows(const RoutingLoads& routing, std::int64_t rows, std::int64_t groups,
                       std::int64_t each) {
  if (!routing.given()) return assumed_rows(rows, groups, each);
  const bool counted = !routing.rows.empty();
  std::vector<double> shares = routing.shares;
  if (!counted && shares.empty())
    shares.assign(static_cast<std::size_t>(groups), 1.0 / static_cast<double>(groups));
  const std::size_t lines = counted ? routing.rows.size() : shares.size();
  if (std::cmp_not_equal(lines, groups))
    refuse_loads(routing, fmt::format("has {} experts, and the block has {}", lines, groups),
                 "a line for each expert of the block");
  RaggedRows result{counted ? routing.rows : whole_rows(shares, rows * each), true};
  const std::int64_t sum =
      std::accumulate(result.groups.begin(), result.groups.end(), std::int64_t{0});
  if (sum != rows * each)
    refuse_loads(routing,
                 fmt::format("counts {} rows, and {} tokens that go to {} experts each make {}",
                             sum, rows, each, rows * each),
                 "such a sum, or the column share in the place of tokens");
  std::ranges::sort(result.groups, std::greater<>());
  if (result.groups.front() > rows)
    refuse_loads(routing,
                 fmt::format("gives an expert {} rows, more than the {} tokens that there are",
                             result.groups.front(), rows),
                 fmt::format("at most one row of every token: a share of 1/{}", each));
  std::erase(result.groups, 0);
  return result;
}

}  // namespace fuseline
