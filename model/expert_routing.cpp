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

// What a gate is a share of: a weight of each expert, and the sum of those that count.
struct Weights {
  std::function<double(std::int64_t)> of;
  double sum = 0;
};

Weights weights_of(const ExpertChoice& choice, std::int64_t experts,
                   const std::function<double(std::int64_t)>& score,
                   const std::vector<std::int64_t>& chosen) {
  Weights weights;
  if (choice.weights == GateWeights::sigmoid) {
    weights.of = [score](std::int64_t e) { return 1 / (1 + std::exp(-score(e))); };
  } else {
    double top = score(0);
    for (std::int64_t e = 0; e < experts; ++e) top = std::max(top, score(e));
    weights.of = [score, top](std::int64_t e) { return std::exp(score(e) - top); };
  }
  if (choice.weights == GateWeights::softmax_of_all) {
    for (std::int64_t e = 0; e < experts; ++e) weights.sum += weights.of(e);
  } else {
    for (const std::int64_t e : chosen) weights.sum += weights.of(e);
  }
  return weights;
}

}  // namespace

const char* name_of(GateWeights weights) {
  switch (weights) {
    case GateWeights::softmax:
      return "softmax";
    case GateWeights::softmax_of_all:
      return "softmax_of_all";
    case GateWeights::sigmoid:
      return "sigmoid";
  }
  FUSELINE_ASSERT(false, "unknown weights of gates");
}

RoutedRow route_row(const ExpertChoice& choice, std::int64_t m, std::int64_t experts,
                    const std::function<double(std::int64_t)>& score) {
  RoutedRow row;
  row.experts =
      choice.loads.groups.empty() ? largest(choice, experts, score) : experts_of_pattern(choice, m);
  const Weights weights = weights_of(choice, experts, score, row.experts);
  for (const std::int64_t e : row.experts)
    row.gates.push_back(choice.factor * weights.of(e) / weights.sum);
  return row;
}

std::vector<double> score_gradients(const ExpertChoice& choice, std::int64_t experts,
                                    const std::function<double(std::int64_t)>& score,
                                    const std::vector<std::int64_t>& named,
                                    const std::vector<double>& d_named) {
  std::vector<std::int64_t> chosen;
  std::vector<double> d_gates;
  for (std::size_t j = 0; j < named.size(); ++j)
    if (named[j] >= 0 && named[j] < experts) {
      chosen.push_back(named[j]);
      d_gates.push_back(d_named[j]);
    }
  if (chosen.empty()) return std::vector<double>(static_cast<std::size_t>(experts), 0.0);
  const Weights weights = weights_of(choice, experts, score, chosen);
  // Shares of the sum: gates without their factor.
  const auto share = [&](std::int64_t e) { return weights.of(e) / weights.sum; };
  double mean = 0;
  for (std::size_t j = 0; j < chosen.size(); ++j) mean += share(chosen[j]) * d_gates[j];
  std::vector<double> result(static_cast<std::size_t>(experts), 0.0);
  if (choice.weights == GateWeights::softmax_of_all)
    for (std::int64_t e = 0; e < experts; ++e)
      result[static_cast<std::size_t>(e)] = -choice.factor * share(e) * mean;
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    const std::int64_t e = chosen[j];
    const double slope = choice.weights == GateWeights::sigmoid ? 1 - weights.of(e) : 1.0;
    result[static_cast<std::size_t>(e)] = choice.factor * share(e) * slope * (d_gates[j] - mean);
  }
  return result;
}

}  // namespace fuseline
