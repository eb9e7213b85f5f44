// The picture of a sweep: time over the size that varies.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/draw/line_chart.h"
#include "sim/report/prediction_charts.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

using Size = std::int64_t Workload::*;
struct NamedSize {
  const char* name;
  Size size;
};
constexpr NamedSize kSweptSizes[] = {
    {"batch", &Workload::batch}, {"seq", &Workload::seq}, {"context", &Workload::context}};

// What varies along x: the one size that differs.
const NamedSize& varied_size(const std::vector<SweptCase>& cases) {
  const NamedSize* found = nullptr;
  std::string differing;
  for (const NamedSize& s : kSweptSizes) {
    std::set<std::int64_t> values;
    for (const SweptCase& c : cases) values.insert(c.what.workload.*s.size);
    if (values.size() < 2) continue;
    differing += (differing.empty() ? "" : ", ") + std::string(s.name);
    // Where two differ, the one with more values is the axis, and the other one names lines.
    if (found == nullptr) found = &s;
    std::set<std::int64_t> before;
    for (const SweptCase& c : cases) before.insert(c.what.workload.*found->size);
    if (values.size() > before.size()) found = &s;
  }
  if (found == nullptr)
    throw InputError({.file = "command line",
                      .field = "--plot",
                      .message = "there is nothing to draw a line along: no size varies",
                      .allowed = "several values of --batch, --seq or --context"});
  return *found;
}

// What tells the lines apart: every part in which the cases differ.
class LineNames {
 public:
  LineNames(const std::vector<SweptCase>& cases, Size along) : along_(along) {
    for (const SweptCase& c : cases) {
      const std::vector<std::string> parts = parts_of(c);
      values_.resize(parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) values_[i].insert(parts[i]);
    }
  }
  [[nodiscard]] std::string of(const SweptCase& c, const std::string& policy) const {
    std::string name = policy;
    const std::vector<std::string> parts = parts_of(c);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (values_[i].size() > 1) name += ", " + parts[i];
    return name;
  }

 private:
  [[nodiscard]] std::vector<std::string> parts_of(const SweptCase& c) const {
    const Workload& w = c.what.workload;
    std::vector<std::string> parts = {c.what.model.name, c.what.gpu.name, name_of(w.phase),
                                      name_of(w.dtype)};
    for (const NamedSize& s : kSweptSizes)
      if (s.size != along_) parts.push_back(fmt::format("{} {}", s.name, w.*s.size));
    return parts;
  }

  Size along_;
  std::vector<std::set<std::string>> values_;
};

}  // namespace

Svg draw_sweep(const std::vector<SweptCase>& cases) {
  FUSELINE_ASSERT(!cases.empty(), "a sweep without cases");
  const NamedSize& along = varied_size(cases);
  const LineNames names(cases, along.size);
  LineChart chart{.title = "Predicted time of one block",
                  .x_name = along.name,
                  .y_name = "µs, with 90 % bands",
                  .lines = {}};
  for (const SweptCase& c : cases) {
    const Sureness sure(c.what.gpu, c.what.workload);
    for (const Prediction& p : c.predictions) {
      const std::string name = names.of(c, p.block.policy);
      auto line = std::ranges::find(chart.lines, name, &ChartLine::name);
      if (line == chart.lines.end()) line = chart.lines.insert(line, {name, {}});
      ChartPoint point{.x = static_cast<double>(c.what.workload.*along.size),
                       .y = to_us(p.block.time)};
      if (const auto band = sure.time(p.block)) {
        point.low = to_us(low_end(p.block.time, *band));
        point.high = to_us(high_end(p.block.time, *band));
      }
      line->points.push_back(point);
    }
  }
  for (ChartLine& line : chart.lines) std::ranges::stable_sort(line.points, {}, &ChartPoint::x);
  return draw(chart);
}

}  // namespace fuseline
