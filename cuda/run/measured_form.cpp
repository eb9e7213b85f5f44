#include <fmt/format.h>

#include "cuda/run/measure.h"

namespace fuseline::cuda {

bool MeasuredPolicy::passed() const {
  if (!not_finite.empty() || !repeats) return false;
  for (const executor::ComparedTensor& t : tensors)
    if (!t.problem.empty()) return false;
  return true;
}

bool GpuMeasurement::passed() const {
  for (const MeasuredPolicy& p : policies)
    if (!p.passed()) return false;
  return true;
}

Measurements as_measurements(const GpuMeasurement& measurement, const Gpu& described) {
  Measurements m;
  m.meta.title = "fuseline's own kernels on one " + measurement.device;
  m.meta.gpu = described.name;
  m.meta.device = measurement.device;
  m.meta.driver = measurement.driver;
  m.meta.toolkit = measurement.toolkit;
  m.meta.framework = "fuseline";
  if (measurement.library_attention)
    m.meta.framework += fmt::format("; libraries, attention too: {}", measurement.libraries);
  else if (!measurement.libraries.empty())
    m.meta.framework += "; library GEMMs: " + measurement.libraries;
  m.meta.counters = measurement.counters && measurement.counters->passed() ? "CUPTI" : "";
  m.meta.notes = measurement.notes;
  if (measurement.overlap) m.meta.launches = kOverlappingLaunches;
  m.rivals = measurement.rivals;
  if (!m.rivals.empty())
    m.meta.notes.push_back(
        fmt::format("rivals.csv: {}, timed in turns with ours", measurement.rival_framework));
  for (const MeasuredPolicy& p : measurement.policies) {
    m.blocks.push_back(p.block);
    if (p.trace) m.traces.push_back(*p.trace);
    for (const TunedGemm& t : p.tuned)
      m.meta.notes.push_back(
          fmt::format("{}, {} ({} x {} x {}): tile {} x {} / {} chosen, {:.1f} % from the best of "
                      "{}, {} x {} / {}",
                      p.block.block.label(), t.kernel, t.M, t.N, t.K, t.chosen.m, t.chosen.n,
                      t.chosen.cluster(), 100 * (t.chosen_time / t.best_time - 1), t.tried.size(),
                      t.best.m, t.best.n, t.best.cluster()));
  }
  return m;
}

}  // namespace fuseline::cuda
