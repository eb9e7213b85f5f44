#include "gui/model/sureness.h"

#include "sim/sure/estimate_bands.h"

namespace fuseline::gui {

namespace {

bool has_bands(const RunView& run) {
  return run.ok() && run.result->block && run.result->predicted && !run.result->is_measured() &&
         run.result->predicted->fidelity == Fidelity::hierarchy;
}

SureFigures ends_of(Seconds time, Bytes hbm, const Band& of_time, const Band& of_hbm) {
  return {low_end(time, of_time), high_end(time, of_time), low_end(hbm, of_hbm),
          high_end(hbm, of_hbm)};
}

}  // namespace

std::optional<SureFigures> sure_figures(const RunView& run) {
  if (!has_bands(run)) return std::nullopt;
  const PlanEstimate& e = *run.result->predicted;
  const Sureness sure(run.result->block->gpu, run.result->block->workload);
  return ends_of(e.time, e.hbm_read + e.hbm_write, *sure.time(e), *sure.hbm(e));
}

std::optional<SureFigures> sure_figures(const RunView& run, const KernelRow& kernel) {
  if (!has_bands(run) || kernel.measured) return std::nullopt;
  const std::string& policy = run.result->predicted->policy;
  const Sureness sure(run.result->block->gpu, run.result->block->workload);
  return ends_of(kernel.estimate.time, kernel.hbm(), sure.time(kernel.estimate, policy),
                 sure.hbm(kernel.estimate, policy));
}

std::optional<SureGain> sure_gain(const RunView& base, const RunView& run) {
  if (!has_bands(base) || !has_bands(run) || !same_work(*base.result, *run.result)) {
    return std::nullopt;
  }
  const PlanEstimate &one = *base.result->predicted, &other = *run.result->predicted;
  const PredictionCase &at = *base.result->block, &to = *run.result->block;
  // Two GPUs: by the one that is less sure.
  const bool less = standing_of(to.gpu) > standing_of(at.gpu);
  const Sureness sure(less ? to.gpu : at.gpu, to.workload);
  const Band band = *sure.gain(one, other);
  const double gain = one.time / other.time;
  return SureGain{gain, gain * band.low, gain * band.high, verdict_of(gain, band)};
}

}  // namespace fuseline::gui
