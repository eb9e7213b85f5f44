#include "sim/sure/traits.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

// Two plans of one block meet the L2 in other states, so times of one kernel differ a little.
const double kSameTime = std::log(1.02);
// Keeps the logarithm of a share of nothing finite.
constexpr double kLeastShare = 0.02;

bool is_other(const KernelEstimate& k) {
  return k.kind != KernelKind::gemm && k.kind != KernelKind::attention;
}

bool same_kernel(const KernelOutline& a, const KernelOutline& b) {
  return a.key == b.key && std::abs(std::log(a.seconds / b.seconds)) < kSameTime;
}

double seconds_of(const std::vector<KernelOutline>& kernels) {
  double sum = 0;
  for (const KernelOutline& k : kernels) sum += k.seconds;
  return sum;
}

// Seconds of kernels of `one` outside products and attention that `other` has not.
double seconds_alone(const std::vector<KernelOutline>& one,
                     const std::vector<KernelOutline>& other) {
  std::vector<bool> taken(other.size(), false);
  double sum = 0;
  for (const KernelOutline& k : one) {
    std::size_t at = 0;
    while (at < other.size() && (taken[at] || !same_kernel(k, other[at]))) ++at;
    if (at < other.size()) {
      taken[at] = true;
    } else if (k.other) {
      sum += k.seconds;
    }
  }
  return sum;
}

double one_if(bool holds) { return holds ? 1.0 : 0.0; }

}  // namespace

std::vector<KernelOutline> outlines_of(const PlanEstimate& estimate) {
  std::vector<KernelOutline> out;
  for (const KernelEstimate& k : estimate.kernels) {
    if (k.time.value() <= 0) continue;
    std::vector<std::string> operators = k.operators;
    std::ranges::sort(operators);
    out.push_back({.key = fmt::format("{} {} {} {}", name_of(k.kind), fmt::join(operators, "+"),
                                      fmt::join(k.tile, "x"), k.split_k),
                   .seconds = k.time.value(),
                   .launches = k.launches,
                   .other = is_other(k)});
  }
  return out;
}

const std::vector<std::string>& trait_names(const std::string& what) {
  static const std::vector<std::string> time = {"limits", "own", "special", "others"};
  static const std::vector<std::string> gain = {"launch", "differing", "mixed"};
  static const std::vector<std::string> none;
  if (what == "time") return time;
  return what == "gain" ? gain : none;
}

std::vector<double> time_traits(const PlanEstimate& estimate, const WorkClass& work) {
  const double limits = estimate.limits.time.value();
  double all = 0, others = 0;
  for (const KernelEstimate& k : estimate.kernels) {
    all += k.time.value();
    if (is_other(k)) others += k.time.value();
  }
  if (limits <= 0 || all <= 0 || estimate.time.value() <= 0) return {};
  return {std::log(limits / estimate.time.value()), one_if(work.maker == "own"),
          one_if(work.kernels != "dense"), others / all};
}

std::vector<double> gain_traits(const WorkClass& work, const std::vector<KernelOutline>& slow,
                                const std::vector<KernelOutline>& fast) {
  if (slow.empty() || fast.empty()) return {};
  const double all = seconds_of(slow) + seconds_of(fast);
  const double alone = seconds_alone(slow, fast) + seconds_alone(fast, slow);
  std::int64_t launches = 0;
  for (const KernelOutline& k : slow) launches += k.launches;
  return {std::log(seconds_of(slow) / static_cast<double>(std::max<std::int64_t>(1, launches))),
          std::log(kLeastShare + alone / all), one_if(work.maker == "mixed")};
}

}  // namespace fuseline
