#include "model/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fuseline {

namespace {

// Groups behind each other take places 0, 1, ...; place p belongs to row p mod M. A group has at
// most M places, so a row has at most one in it, and M·k places give every row k.
std::vector<std::int64_t> experts_of_pattern(const ExpertChoice& choice, std::int64_t m) {
  const std::vector<std::int64_t>& loads = choice.loads.groups;
  const std::int64_t places = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  const std::int64_t rows = places / choice.count;
  std::vector<std::int64_t> chosen;
  std::size_t group = 0;
  std::int64_t end = loads.front();
  for (std::int64_t place = m; place < places; place += rows) {
    while (place >= end) end += loads[++group];
    chosen.push_back(static_cast<std::int64_t>(group));
  }
  FUSELINE_ASSERT(std::ssize(chosen) == choice.count, "a row without its experts");
  return chosen;
}

std::vector<std::int64_t> largest(const ExpertChoice& choice, std::int64_t experts,
                                  const std::function<double(std::int64_t)>& score) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(experts));
  std::iota(all.begin(), all.end(), 0);
  std::partial_sort(all.begin(), all.begin() + choice.count, all.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      return score(a) > score(b) || (score(a) == score(b) && a < b);
                    });
  all.resize(static_cast<std::size_t>(choice.count));
  return all;
}

}  // namespace

RoutedRow route_row(const ExpertChoice& choice, std::int64_t m, std::int64_t experts,
                    const std::function<double(std::int64_t)>& score) {
  RoutedRow row;
  row.experts =
      choice.loads.groups.empty() ? largest(choice, experts, score) : experts_of_pattern(choice, m);
  double top = score(0);
  for (std::int64_t e = 0; e < experts; ++e) top = std::max(top, score(e));
  const auto weight = [&](std::int64_t e) {
    return choice.weights == GateWeights::sigmoid ? 1 / (1 + std::exp(-score(e)))
                                                  : std::exp(score(e) - top);
  };
  double sum = 0;
  if (choice.weights == GateWeights::softmax_of_all) {
    for (std::int64_t e = 0; e < experts; ++e) sum += weight(e);
  } else {
    for (const std::int64_t e : row.experts) sum += weight(e);
  }
  for (const std::int64_t e : row.experts) row.gates.push_back(choice.factor * weight(e) / sum);
  return row;
}

}  // namespace fuseline
