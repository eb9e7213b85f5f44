#include "sim/training/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"

namespace fuseline::training {

namespace {

constexpr double kWorstRatio = 2.0;
constexpr double kLeastFall = 0.1;  // of the first loss
constexpr double kMostGap = 0.1;    // of the fp64 run's fall

std::string number(double value, int decimals = 3) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

double mean(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(end - begin);
}

const Curve& curve_of(const Training& training, const std::string& name) {
  const auto found = std::ranges::find(training.curves, name, &Curve::name);
  FUSELINE_ASSERT(found != training.curves.end(), "no run " + name);
  return *found;
}

// Gaps of a curve that has not ended early.
void measure(const Curve& curve, const Curve& fp64, std::size_t window, CurveVerdict& v) {
  std::vector<double> gap;
  for (std::size_t i = 0; i < curve.losses.size(); ++i) {
    gap.push_back(curve.losses[i] - fp64.losses[i]);
    if (std::abs(gap[i]) <= v.largest_gap) continue;
    v.largest_gap = std::abs(gap[i]);
    v.at_step = static_cast<std::int64_t>(i) + 1;
  }
  for (std::size_t end = window; end <= gap.size(); ++end)
    v.smoothed_gap = std::max(v.smoothed_gap, std::abs(mean(gap, end - window, end)));
}

std::string problem_of(const CurveVerdict& v, double fall) {
  if (v.last > (1 - kLeastFall) * v.first)
    return "the loss fell from " + number(v.first) + " to " + number(v.last) + " only";
  if (v.smoothed_gap > kMostGap * fall)
    return "the gap to fp64 is " + number(v.smoothed_gap, 4) + ", more than a tenth of what fp64 " +
           "learned (" + number(fall) + ")";
  if (v.allowed > 0 && v.smoothed_gap > v.allowed)
    return "the gap to fp64 is " + number(v.smoothed_gap, 4) +
           ", more than twice the unfused and " + "nudged runs' (" + number(v.allowed, 4) + ")";
  return "";
}

}  // namespace

bool Verdict::passed() const {
  return !curves.empty() &&
         std::ranges::all_of(curves, [](const CurveVerdict& c) { return c.problem.empty(); });
}

std::string Verdict::line() const {
  for (const CurveVerdict& c : curves)
    if (!c.problem.empty()) return "does not train: " + c.name + ": " + c.problem;
  std::string losses;
  std::string gaps;
  for (const CurveVerdict& c : curves) {
    if (c.name == kNudgedRun) continue;
    losses += (losses.empty() ? "" : ", ") + c.name + " " + number(c.last);
    if (c.name != kFp64Run)
      gaps += (gaps.empty() ? "" : ", ") + c.name + " " + number(c.smoothed_gap, 4);
  }
  return "trains: final loss " + losses + "; largest gap to fp64 over " + std::to_string(window) +
         (window == 1 ? " step: " : " steps: ") + gaps;
}

Verdict judge(const Training& training) {
  const Curve& fp64 = curve_of(training, kFp64Run);
  Verdict verdict;
  verdict.window = std::max<std::int64_t>(1, static_cast<std::int64_t>(fp64.losses.size()) / 10);
  const auto window = static_cast<std::size_t>(verdict.window);
  for (const Curve& curve : training.curves) {
    CurveVerdict v;
    v.name = curve.name;
    if (curve.losses.size() < fp64.losses.size() || curve.losses.empty()) {
      v.problem = "the loss of step " + std::to_string(curve.losses.size() + 1) + " is not finite";
    } else {
      v.first = curve.losses.front();
      v.last = mean(curve.losses, curve.losses.size() - window, curve.losses.size());
      measure(curve, fp64, window, v);
    }
    verdict.curves.push_back(std::move(v));
  }
  const auto find = [&](const std::string& name) -> const CurveVerdict& {
    return *std::ranges::find(verdict.curves, name, &CurveVerdict::name);
  };
  const double allowed =
      kWorstRatio * std::max(find("unfused").smoothed_gap, find(kNudgedRun).smoothed_gap);
  const double fall = find(kFp64Run).first - find(kFp64Run).last;
  for (CurveVerdict& v : verdict.curves) {
    const bool judged = v.name != "unfused" && v.name != kFp64Run && v.name != kNudgedRun;
    if (judged) v.allowed = allowed;
    if (v.problem.empty()) v.problem = problem_of(v, fall);
  }
  return verdict;
}

}  // namespace fuseline::training
