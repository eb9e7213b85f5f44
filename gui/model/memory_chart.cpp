#include "gui/model/memory_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gui/model/chart_colours.h"
#include "gui/model/text.h"
#include "sim/block/limits.h"

namespace fuseline::gui {

namespace {

// What one launch or the block moved.
struct Flow {
  Seconds time;
  Flops flops;
  Bytes hbm_read, hbm_write, l2, smem;
  bool smem_known = true;
  std::optional<Bound> bound;
};

Flow& operator+=(Flow& sum, const KernelRow& row) {
  const KernelEstimate& k = row.estimate;
  sum.time += k.time;
  sum.flops += k.flops;
  sum.hbm_read += k.hbm_read;
  sum.hbm_write += k.hbm_write;
  sum.l2 += k.l2;
  sum.smem += k.smem;
  sum.smem_known = sum.smem_known && !row.measured;
  return sum;
}

Flow flow_of(const KernelRow& row) {
  Flow flow;
  flow += row;
  if (!row.measured) flow.bound = row.estimate.bound;
  return flow;
}

Flow flow_of(const RunResult& r) {
  Flow flow;
  std::map<Bound, Seconds> by_bound;
  for (const KernelRow& row : r.kernels) {
    flow += row;
    if (!row.measured) by_bound[row.estimate.bound] += row.estimate.time;
  }
  flow.time = r.totals.time;
  for (const auto& [bound, time] : by_bound) {
    if (!flow.bound || time > by_bound[*flow.bound]) flow.bound = bound;
  }
  return flow;
}

std::string kib(Bytes bytes) {
  const double k = bytes.as_double() / 1024;
  if (k < 1024) return fmt::format("{:.4g} KiB", k);
  if (k < 1024 * 1024) return fmt::format("{:.4g} MiB", k / 1024);
  return fmt::format("{:.4g} GB", bytes.as_double() / 1e9);
}

BytesPerSecond rate_of(Bytes bytes, Seconds time) {
  return BytesPerSecond(time.value() > 0 ? bytes.as_double() / time.value() : 0);
}

MemoryBox box(MemoryLevel level, std::string capacity, double used, double peak,
              const std::string& peak_text, bool sets_time) {
  MemoryBox b;
  b.level = level;
  b.label = level == MemoryLevel::registers ? "registers and tensor cores" : name_of(level);
  b.capacity = std::move(capacity);
  b.utilisation = peak > 0 ? std::min(1.0, used / peak) : 0;
  b.utilisation_text = fmt::format("{:.0f} % of {}", 100 * b.utilisation, peak_text);
  b.sets_time = sets_time;
  b.tooltip = fmt::format("{}\n{}\n{}", b.label, b.capacity, b.utilisation_text);
  switch (level) {
    case MemoryLevel::registers:
      b.colour = {ColourRole::bound_tensor, 0};
      break;
    case MemoryLevel::smem:
      b.colour = {ColourRole::bound_smem, 0};
      break;
    case MemoryLevel::l2:
      b.colour = {ColourRole::bound_l2, 0};
      break;
    case MemoryLevel::hbm:
      b.colour = {ColourRole::bound_hbm, 0};
      break;
  }
  b.thing = level_thing(level);
  return b;
}

MemoryArrow arrow(MemoryLevel from, MemoryLevel to, Bytes bytes, Seconds time,
                  const std::string& what, bool unknown = false) {
  MemoryArrow a{.from = from,
                .to = to,
                .bytes = bytes,
                .rate = rate_of(bytes, time),
                .label = {},
                .tooltip = {},
                .unknown = unknown};
  a.label = unknown ? "not counted" : short_bytes(bytes) + " · " + short_rate(a.rate);
  a.tooltip = unknown ? what + "\nthe counters do not tell"
                      : fmt::format("{}\n{}\n{}", what, exact_bytes(bytes), short_rate(a.rate));
  return a;
}

}  // namespace

MemoryChart memory_chart(const RunView& view, std::optional<std::size_t> kernel) {
  MemoryChart chart;
  chart.about = subject_of(view);
  if (!view.ok()) {
    chart.problem = view.result && view.result->problem ? view.result->problem->text : "";
    return chart;
  }
  const RunResult& r = *view.result;
  const KernelRow* one = kernel && *kernel < r.kernels.size() ? &r.kernels[*kernel] : nullptr;
  if (!r.totals.has_bytes) {
    chart.problem = "only the time was measured: bytes need a kernel trace";
    return chart;
  }
  chart.title = one ? one->estimate.name + " of " + view.label() : view.label() + ": the block";
  const Flow f = one ? flow_of(*one) : flow_of(r);
  const Gpu& gpu = r.block->gpu;
  const double clock = r.predicted ? r.predicted->clock_factor : 1.0;
  const FlopsPerSecond peak = tensor_peak(gpu, r.block->workload.dtype) *
                              (gpu.tensor_clock.value() > 0 ? gpu.sm_clock / gpu.tensor_clock : 1) *
                              clock;
  const BytesPerSecond smem_peak(static_cast<double>(gpu.sm_count * gpu.smem_bytes_per_clock) *
                                 gpu.sm_clock.value() * clock);
  const auto set_by = [&](Bound b) { return f.bound == b; };
  const double seconds = f.time.value();
  const double flop_rate = seconds > 0 ? f.flops.as_double() / seconds : 0;
  chart.boxes = {
      box(MemoryLevel::registers, fmt::format("{} × {}", gpu.sm_count, kib(gpu.registers_per_sm)),
          flop_rate, peak.value(), short_rate(peak), set_by(Bound::tensor)),
      box(MemoryLevel::smem, fmt::format("{} × {}", gpu.sm_count, kib(gpu.smem_per_sm)),
          rate_of(f.smem, f.time).value(), smem_peak.value(), short_rate(smem_peak),
          set_by(Bound::smem)),
      box(MemoryLevel::l2, kib(gpu.l2_capacity), rate_of(f.l2, f.time).value(),
          gpu.l2_bandwidth.value(), short_rate(gpu.l2_bandwidth), set_by(Bound::l2)),
      box(MemoryLevel::hbm, kib(gpu.hbm_capacity),
          rate_of(f.hbm_read + f.hbm_write, f.time).value(), gpu.hbm_bandwidth.value(),
          short_rate(gpu.hbm_bandwidth), set_by(Bound::hbm))};
  chart.arrows = {arrow(MemoryLevel::hbm, MemoryLevel::l2, f.hbm_read, f.time, "read from HBM"),
                  arrow(MemoryLevel::l2, MemoryLevel::hbm, f.hbm_write, f.time, "written to HBM"),
                  arrow(MemoryLevel::l2, MemoryLevel::smem, f.l2, f.time, "between L2 and the SMs"),
                  arrow(MemoryLevel::smem, MemoryLevel::registers, f.smem, f.time,
                        "between shared memory and registers", !f.smem_known)};
  if (!f.smem_known) {
    chart.boxes[1].utilisation = 0;
    chart.boxes[1].utilisation_text = "not counted";
  }
  Bytes widest;
  for (const MemoryArrow& a : chart.arrows) widest = std::max(widest, a.bytes);
  for (MemoryArrow& a : chart.arrows) {
    if (widest > Bytes(0)) a.width = std::sqrt(a.bytes.as_double() / widest.as_double());
  }
  return chart;
}

Table to_table(const MemoryChart& chart) {
  Table table{"memory", {"from", "to", "bytes", "bytes_per_s", "utilisation_of_from"}, {}};
  for (const MemoryArrow& a : chart.arrows) {
    double used = 0;
    for (const MemoryBox& b : chart.boxes) {
      if (b.level == a.from) used = b.utilisation;
    }
    add_row(table,
            {std::string(name_of(a.from)), std::string(name_of(a.to)),
             a.unknown ? Cell() : Cell(a.bytes.value()), a.unknown ? Cell() : Cell(a.rate.value()),
             used},
            chart.about);
  }
  return table;
}

}  // namespace fuseline::gui
