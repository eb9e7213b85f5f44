// The picture of a plan: kernels from top to bottom, tensors as curves beside them.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/format.h"
#include "sim/report/prediction_charts.h"

namespace fuseline {

namespace {

constexpr double kPlanWidth = 820, kPlanTop = 40, kBoxWidth = 360, kPlanLeft = 8, kPlanGap = 14;
constexpr double kPlanLine = 15, kPlanPadding = 8;

struct Box {
  double top = 0, height = 0;
  [[nodiscard]] double middle() const { return top + height / 2; }
};

// The operators' names in lines that fit into the box.
std::vector<std::string> lines_of(const std::vector<std::string>& operators) {
  std::vector<std::string> lines;
  for (const std::string& name : operators) {
    const bool fits = !lines.empty() &&
                      text_width(lines.back() + " · " + name, 11) < kBoxWidth - 2 * kPlanPadding;
    if (fits) {
      lines.back() += " · " + name;
    } else {
      lines.push_back(shortened_to(name, kBoxWidth - 2 * kPlanPadding, 11));
    }
  }
  return lines;
}

// A tensor that goes from one kernel to another through memory.
struct Passed {
  std::size_t from = 0, to = 0;
  const TensorExplanation* tensor = nullptr;
};

std::vector<Passed> passed_tensors(const Explanation& e) {
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < e.kernels.size(); ++i) place[e.kernels[i].name] = i;
  std::vector<Passed> out;
  for (const TensorExplanation& t : e.tensors) {
    const auto from = place.find(t.producer);
    if (from == place.end()) continue;
    for (const std::string& consumer : t.consumers) {
      const auto to = place.find(consumer);
      if (to != place.end() && to->second > from->second)
        out.push_back({from->second, to->second, &t});
    }
  }
  return out;
}

// Curves that overlap get lanes of their own, short ones the inner lanes.
std::vector<std::size_t> lanes_of(const std::vector<Passed>& passed) {
  std::vector<std::size_t> order(passed.size()), lanes(passed.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return passed[i].to - passed[i].from; });
  std::vector<std::vector<std::size_t>> taken;
  for (const std::size_t i : order) {
    std::size_t lane = 0;
    for (; lane < taken.size(); ++lane) {
      const bool clear = std::ranges::none_of(taken[lane], [&](std::size_t other) {
        return passed[i].from < passed[other].to && passed[other].from < passed[i].to;
      });
      if (clear) break;
    }
    if (lane == taken.size()) taken.emplace_back();
    taken[lane].push_back(i);
    lanes[i] = lane;
  }
  return lanes;
}

}  // namespace

Svg draw_plan(const ExplainedPlan& plan) {
  const Explanation& e = plan.what;
  std::vector<Box> boxes;
  std::vector<std::vector<std::string>> lines;
  double bottom = kPlanTop;
  for (const KernelExplanation& k : e.kernels) {
    lines.push_back(lines_of(k.operators));
    const double height =
        2 * kPlanPadding + kPlanLine * (1 + static_cast<double>(lines.back().size()));
    boxes.push_back({bottom, height});
    bottom += height + kPlanGap;
  }
  const std::vector<Passed> passed = passed_tensors(e);
  const std::vector<std::size_t> lanes = lanes_of(passed);
  std::string described = fmt::format("{} kernels in order", e.kernels.size());
  for (const KernelExplanation& k : e.kernels)
    described += fmt::format("; {}: {}", k.name, fmt::join(k.operators, ", "));
  Svg svg(kPlanWidth, bottom + 12, "Plan of " + e.policy, described);
  svg.text(0, 16, fmt::format("Kernels of {} and the tensors between them", e.policy),
           Anchor::start, 14, 1, true);
  svg.text(kPlanWidth, 16, "solid: through HBM, dashed: L2 still holds it", Anchor::end, 11, 0.8);
  const double edge = kPlanLeft + kBoxWidth;
  std::size_t most_lanes = 1;
  for (const std::size_t lane : lanes) most_lanes = std::max(most_lanes, lane + 1);
  const double lane_width = std::min(34.0, 250.0 / static_cast<double>(most_lanes));
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const Passed& p = passed[i];
    const bool in_l2 = p.tensor->home == "L2";
    const double begin = boxes[p.from].top + boxes[p.from].height - 6, end = boxes[p.to].top + 8;
    const double out = edge + 18 + lane_width * static_cast<double>(lanes[i]);
    const std::string colour = palette_colour(lanes[i]);
    const double bend = std::min(10.0, (end - begin) / 2);
    svg.path(
        fmt::format("M{0} {1}H{2}Q{3} {1} {3} {4}V{5}Q{3} {6} {2} {6}H{7}", edge, begin, out - 8,
                    out, begin + bend, std::max(begin + bend, end - bend), end, edge + 5),
        colour, 1.6, 0.9, in_l2,
        fmt::format("{} {}, {} MB, {}", p.tensor->name, p.tensor->shape, megabytes(p.tensor->bytes),
                    p.tensor->home));
    svg.path(fmt::format("M{0} {1}l7 -4M{0} {1}l7 4", edge + 1, end), colour, 1.6);
  }
  // A tensor is named once, right of all lanes, at the height where it leaves its kernel.
  const double names = edge + 26 + lane_width * static_cast<double>(most_lanes);
  std::vector<double> heights;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const Passed& p = passed[i];
    const bool first = std::none_of(passed.begin(), passed.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const Passed& o) { return o.tensor == p.tensor; });
    if (!first) continue;
    double y = boxes[p.from].top + boxes[p.from].height - 2;
    while (std::ranges::any_of(heights, [&](double h) { return std::abs(h - y) < 12; })) y += 12;
    heights.push_back(y);
    const std::string words = fmt::format("{}, {} MB", p.tensor->name, megabytes(p.tensor->bytes));
    svg.text(names, y, shortened_to(words, kPlanWidth - names, 11), Anchor::start, 11, 0.9);
  }
  for (std::size_t i = 0; i < e.kernels.size(); ++i) {
    const KernelExplanation& k = e.kernels[i];
    const Box& box = boxes[i];
    svg.outline(kPlanLeft, box.top, kBoxWidth, box.height, 5, k.implementation);
    const double y = box.top + kPlanPadding + 11;
    svg.text(kPlanLeft + kPlanPadding, y, k.name, Anchor::start, 12, 1, true);
    if (const KernelEstimate* estimate = plan.kernel(k.name))
      svg.text(kPlanLeft + kBoxWidth - kPlanPadding, y,
               fmt::format("{} · {} µs · {}", k.kind, in_microseconds(estimate->time),
                           name_of(estimate->bound)),
               Anchor::end, 11, 0.85);
    for (std::size_t l = 0; l < lines[i].size(); ++l)
      svg.text(kPlanLeft + kPlanPadding, y + kPlanLine * static_cast<double>(l + 1), lines[i][l],
               Anchor::start, 11, 0.85);
  }
  return svg;
}

}  // namespace fuseline
