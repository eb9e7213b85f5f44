#include "sim/search/size_ranges.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace fuseline {

std::vector<Parting> best_partings(std::size_t count, std::size_t most,
                                   const std::function<double(const ShapeRange&)>& cost) {
  FUSELINE_ASSERT(count > 0 && most > 0, "no sizes, or no ranges");
  constexpr double kEqual = 1e-12;  // relative: one more range must gain more than rounding does
  most = std::min(most, count);
  std::vector<std::vector<double>> costs(count, std::vector<double>(count));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a; b < count; ++b) costs[a][b] = cost({a, b});
  // least[k][b]: of the sizes 0 to b in exactly k + 1 ranges, the last of which begins at from.
  constexpr double kNoParting = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(most, std::vector<double>(count, kNoParting));
  std::vector<std::vector<std::size_t>> from(most, std::vector<std::size_t>(count, 0));
  least[0] = costs[0];
  for (std::size_t k = 1; k < most; ++k) {
    for (std::size_t b = k; b < count; ++b) {
      for (std::size_t a = k; a <= b; ++a) {
        const double sum = least[k - 1][a - 1] + costs[a][b];
        if (sum >= least[k][b]) continue;
        least[k][b] = sum;
        from[k][b] = a;
      }
    }
  }
  std::vector<Parting> out;
  for (std::size_t k = 0; k < most; ++k) {
    const double here = least[k][count - 1];
    if (!out.empty() && here >= out.back().cost * (1 - kEqual)) {
      out.push_back(out.back());
      continue;
    }
    Parting parting{.cost = here, .ranges = {}};
    std::size_t end = count - 1;
    for (std::size_t left = k + 1; left-- > 0;) {
      parting.ranges.push_back({from[left][end], end});
      if (left > 0) end = from[left][end] - 1;
    }
    std::ranges::reverse(parting.ranges);
    out.push_back(std::move(parting));
  }
  return out;
}

}  // namespace fuseline
