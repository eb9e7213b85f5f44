// Limits of traffic as JSON, CSV and a drawing.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv_text.h"
#include "base/json_text.h"
#include "sim/draw/line_chart.h"
#include "sim/nests/traffic_limits.h"

namespace fuseline {

namespace {

using LimitsJson = nlohmann::ordered_json;

LimitsJson tiled_json(const std::optional<TiledTraffic>& t) {
  if (!t) return nullptr;
  return {{"capacity_bytes", t->capacity.value()},
          {"bytes", t->moved.value()},
          {"tiles", describe(t->tiles)}};
}

LimitsJson level_json(const TrafficLevel& level) {
  return {{"capacity_bytes", level.capacity.value()},
          {"least_bytes", level.least.value()},
          {"tiled", tiled_json(level.tiled)},
          {"predicted_bytes", level.predicted.value()}};
}

LimitsJson kernels_json(const PredictionCase& c, const std::vector<KernelTraffic>& kernels) {
  LimitsJson list = LimitsJson::array();
  for (const KernelTraffic& k : kernels) {
    LimitsJson one = {{"name", k.name},
                      {"loops", k.loops},
                      {"compulsory_bytes", k.compulsory.value()},
                      {"hbm", level_json(k.hbm)},
                      {"l2", level_json(k.l2)}};
    LimitsJson curve = LimitsJson::array();
    for (const Bytes capacity : curve_capacities(k, c.gpu))
      curve.push_back({{"capacity_bytes", capacity.value()},
                       {"least_bytes", k.least_at(capacity).value()},
                       {"tiled", tiled_json(best_within(k.curve, capacity))}});
    one["curve"] = std::move(curve);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::vector<Bytes> curve_capacities(const KernelTraffic& kernel, const Gpu& gpu) {
  std::vector<Bytes> at = {
      gpu.smem_per_sm + gpu.registers_per_sm, gpu.l2_capacity,
      gpu.l2_capacity + gpu.sm_count * (gpu.smem_per_sm + gpu.registers_per_sm)};
  for (Bytes c(16 << 10);; c *= 2) {
    at.push_back(c);
    if (kernel.curve.empty() || c >= kernel.curve.back().capacity) break;
  }
  std::ranges::sort(at);
  at.erase(std::unique(at.begin(), at.end()), at.end());
  return at;
}

Svg draw_curve(const KernelTraffic& kernel, const Gpu& gpu) {
  ChartLine least{.name = "no schedule moves less", .points = {}};
  ChartLine tiled{.name = "the best tiling", .points = {}};
  const auto mb = [](Bytes b) { return b.as_double() / 1e6; };
  for (const Bytes capacity : curve_capacities(kernel, gpu)) {
    least.points.push_back({.x = mb(capacity), .y = mb(kernel.least_at(capacity))});
    if (const auto best = best_within(kernel.curve, capacity))
      tiled.points.push_back({.x = mb(capacity), .y = mb(best->moved)});
  }
  return draw(LineChart{.title = fmt::format("{}: {}", kernel.name, kernel.loops),
                        .x_name = "MB of the near memory",
                        .y_name = "MB moved",
                        .lines = {std::move(tiled), std::move(least)}});
}

std::string curves_csv(const std::vector<const KernelTraffic*>& kernels, const Gpu& gpu) {
  std::string text = "kernel,loops,capacity_bytes,least_bytes,tiled_bytes,tiles\n";
  for (const KernelTraffic* k : kernels)
    for (const Bytes capacity : curve_capacities(*k, gpu)) {
      const auto best = best_within(k->curve, capacity);
      text += fmt::format("{},{},{},{},{},{}\n", csv_cell(k->name), csv_cell(k->loops),
                          capacity.value(), k->least_at(capacity).value(),
                          best ? std::to_string(best->moved.value()) : "",
                          best ? csv_cell(describe(best->tiles)) : "");
    }
  return text;
}

std::string traffic_limits_json(const PredictionCase& c, const TrafficLimits& limits) {
  const Limits& block = limits.estimate.limits;
  const LimitsJson out = {
      {"schema", "fuseline.limits/1"},
      {"model", c.model.name},
      {"gpu", c.gpu.name},
      {"phase", name_of(c.workload.phase)},
      {"batch", c.workload.batch},
      {"seq", c.workload.seq},
      {"context", c.workload.context},
      {"policy", limits.estimate.policy},
      {"on_chip_bytes", limits.on_chip.value()},
      {"sm_bytes", limits.of_sm.value()},
      {"compulsory_bytes", block.compulsory.value()},
      {"least_bytes", limits.block_least.value()},
      {"predicted_bytes", (limits.estimate.hbm_read + limits.estimate.hbm_write).value()},
      {"kernels", kernels_json(c, limits.kernels)},
      {"chains", kernels_json(c, limits.chains)}};
  return json_text(out);
}

}  // namespace fuseline
