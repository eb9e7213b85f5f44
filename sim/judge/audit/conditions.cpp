#include "sim/judge/audit/conditions.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/format.h"

namespace fuseline::audit {

namespace {

// The distinct values of one dimension, numbers in order of value, others in order of appearance.
std::vector<Dimension> values_of(const std::vector<Point>& points, std::size_t d,
                                 bool only_holding) {
  std::vector<Dimension> out;
  for (const Point& p : points) {
    if (only_holding && !p.holds) continue;
    const Dimension& value = p.dimensions[d];
    const auto same = [&](const Dimension& other) { return other.value == value.value; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(value);
  }
  if (!out.empty() && out.front().numeric) {
    std::sort(out.begin(), out.end(),
              [](const Dimension& a, const Dimension& b) { return a.number < b.number; });
  }
  return out;
}

std::string readable(const Dimension& value) {
  if (!value.numeric) return value.value;
  const auto whole = static_cast<std::int64_t>(value.number);
  return static_cast<double>(whole) == value.number ? grouped(whole) : value.value;
}

std::string joined(const std::vector<Dimension>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += i + 1 == values.size() ? " or " : ", ";
    text += readable(values[i]);
  }
  return text;
}

std::string condition(const std::vector<Dimension>& allowed, const std::vector<Dimension>& all) {
  const std::string& name = all.front().name;
  if (allowed.front().numeric && !(allowed.size() == 1 && allowed.front().number == 1)) {
    // A run of the smallest or of the largest values tried.
    const auto same = [](const Dimension& a, const Dimension& b) { return a.value == b.value; };
    if (std::equal(allowed.begin(), allowed.end(), all.begin(), same)) {
      return fmt::format("{} <= {}", name, readable(allowed.back()));
    }
    if (std::equal(allowed.rbegin(), allowed.rend(), all.rbegin(), same)) {
      return fmt::format("{} >= {}", name, readable(allowed.front()));
    }
  }
  if (allowed.size() + 1 == all.size() && all.size() > 3) {
    for (const Dimension& v : all) {
      const auto same = [&](const Dimension& other) { return other.value == v.value; };
      if (std::none_of(allowed.begin(), allowed.end(), same)) return name + " not " + v.value;
    }
  }
  return name + " " + joined(allowed);
}

}  // namespace

Conditions conditions_of(const std::vector<Point>& points) {
  Conditions out;
  std::vector<Point> left = points;
  const auto holds = [](const Point& p) { return p.holds; };
  if (std::none_of(points.begin(), points.end(), holds)) return out;
  for (std::size_t d = 0; d < points.front().dimensions.size(); ++d) {
    const std::vector<Dimension> all = values_of(points, d, false);
    const std::vector<Dimension> allowed = values_of(points, d, true);
    if (allowed.size() == all.size()) continue;
    out.necessary.push_back(condition(allowed, all));
    std::erase_if(left, [&](const Point& p) {
      return std::none_of(allowed.begin(), allowed.end(),
                          [&](const Dimension& v) { return v.value == p.dimensions[d].value; });
    });
  }
  out.meeting = left.size();
  out.holding = static_cast<std::size_t>(std::count_if(left.begin(), left.end(), holds));
  return out;
}

std::vector<ShareHolding> shares_holding(const std::vector<Point>& points, std::size_t dimension) {
  std::vector<ShareHolding> out;
  for (const Dimension& value : values_of(points, dimension, false)) {
    ShareHolding share{readable(value), 0, 0};
    for (const Point& p : points) {
      if (p.dimensions[dimension].value != value.value) continue;
      ++share.points;
      if (p.holds) ++share.holding;
    }
    out.push_back(std::move(share));
  }
  return out;
}

std::string alternatives(const std::vector<Point>& points) {
  constexpr std::size_t kMostValues = 3;
  constexpr double kEnough = 0.9;
  std::string best_text;
  double best = kEnough;
  for (std::size_t d = 0; d < points.front().dimensions.size(); ++d) {
    const std::vector<ShareHolding> shares = shares_holding(points, d);
    if (shares.size() < 2 || shares.size() > kMostValues) continue;
    std::string text;
    std::size_t meeting = 0, holding = 0;
    for (const ShareHolding& share : shares) {
      std::vector<Point> some = points;
      std::erase_if(some, [&](const Point& p) { return readable(p.dimensions[d]) != share.value; });
      const Conditions c = conditions_of(some);
      meeting += c.meeting;
      holding += c.holding;
      if (share.holding == 0) continue;
      text += (text.empty() ? "" : ", or ") + points.front().dimensions[d].name + " " + share.value;
      if (!c.necessary.empty()) text += fmt::format(" with {}", fmt::join(c.necessary, " and "));
    }
    const double precision = static_cast<double>(holding) / static_cast<double>(meeting);
    if (precision < best) continue;
    best = precision + 1e-9;
    best_text = text;
  }
  return best_text;
}

}  // namespace fuseline::audit
