#include "sim/search/least_rest.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fuseline {

namespace {

constexpr std::size_t kMostStates = 300'000;
constexpr double kNone = std::numeric_limits<double>::infinity();

std::size_t first_of(const UnitSet& set, std::size_t units) {
  std::size_t u = 0;
  while (u < units && !set.test(u)) ++u;
  return u;
}

}  // namespace

KernelMenu::KernelMenu(std::vector<UnitSet> kernels, std::size_t units)
    : sets(std::move(kernels)), beginning(units) {
  for (std::size_t k = 0; k < sets.size(); ++k) beginning[first_of(sets[k], units)].push_back(k);
}

LeastRest::LeastRest(const KernelMenu& menu, std::size_t units, std::vector<double> costs)
    : menu_(menu), units_(units), costs_(std::move(costs)), shares_(units, kNone) {
  // A kernel's cost is divided among its units like the costs of kernels of them alone.
  std::vector<double> weight(units, 0);
  for (std::size_t k = 0; k < menu.sets.size(); ++k)
    if (menu.sets[k].count() == 1) weight[first_of(menu.sets[k], units)] = costs_[k];
  for (std::size_t k = 0; k < menu.sets.size(); ++k) {
    double all = 0;
    for (std::size_t u = 0; u < units; ++u)
      if (menu.sets[k].test(u)) all += weight[u];
    for (std::size_t u = 0; u < units; ++u)
      if (menu.sets[k].test(u))
        shares_[u] = std::min(shares_[u], all > 0 ? costs_[k] * weight[u] / all : 0.0);
  }
}

double LeastRest::shares_of_rest(const UnitSet& covered) const {
  double sum = 0;
  for (std::size_t u = 0; u < units_; ++u)
    if (!covered.test(u)) sum += shares_[u];
  return sum;
}

double LeastRest::of(const UnitSet& covered) {
  UnitSet rest;
  for (std::size_t u = 0; u < units_; ++u) rest.set(u, !covered.test(u));
  const std::size_t first = first_of(rest, units_);
  if (first == units_) return 0;
  if (const auto found = known_.find(covered); found != known_.end()) return found->second;
  if (known_.size() >= kMostStates) return shares_of_rest(covered);
  double least = kNone;
  for (const std::size_t k : menu_.beginning[first])
    if ((menu_.sets[k] & covered).none())
      least = std::min(least, costs_[k] + of(covered | menu_.sets[k]));
  known_.emplace(covered, least);
  return least;
}

}  // namespace fuseline
