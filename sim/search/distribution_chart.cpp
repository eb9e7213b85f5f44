// Plans for shapes that vary as a drawing.
#include <fmt/format.h>

#include "sim/draw/line_chart.h"
#include "sim/search/distribution.h"

namespace fuseline {

Svg draw_distribution(const PredictionCase& c, const DistributionResult& r) {
  const auto line = [&](const char* name, auto mean) {
    ChartLine out{.name = name, .points = {}};
    for (std::size_t k = 0; k < r.by_buckets.size(); ++k)
      out.points.push_back({.x = static_cast<double>(k + 1), .y = to_us(mean(k))});
    return out;
  };
  LineChart chart{
      .title = fmt::format("One block of {} on {}: mean over {} sizes", c.model.name,
                           c.gpu.title.empty() ? c.gpu.name : c.gpu.title, r.shapes.size()),
      .x_name = "at most so many buckets",
      .y_name = "µs",
      .lines = {line("buckets, padded", [&](std::size_t k) { return r.by_padded[k]; }),
                line("buckets, not padded", [&](std::size_t k) { return r.by_buckets[k]; }),
                line("no fusion", [&](std::size_t) { return r.fallback; })}};
  return draw(chart);
}

}  // namespace fuseline
