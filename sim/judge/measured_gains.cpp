#include "sim/judge/measured_gains.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/parallel_for.h"
#include "sim/judge/validation.h"

namespace fuseline {

namespace {

struct PairOfBlocks {
  MeasuredBlock one, other;
};

bool has_order(const MeasuredGain& gain) {
  return std::abs(std::log(gain.predicted)) >= kLeastOrder;
}

}  // namespace

std::vector<MeasuredGain> measured_gains(const std::string& folder, const std::string& policy,
                                         const std::string& over) {
  Measurements all = load_measurements(folder);
  MeasuredTiles tiles(all);
  all.traces.clear();
  all.gemms.clear();
  std::vector<PairOfBlocks> pairs;
  for (const MeasuredBlock& b : all.blocks) {
    if (b.block.execution != policy) continue;
    BlockCase wanted = b.block;
    wanted.execution = over;
    if (auto other = find_block(all, wanted)) pairs.push_back({b, std::move(*other)});
  }
  if (pairs.empty()) return {};
  if (all.meta.gpu.empty()) {
    throw InputError({.file = folder + "/meta.toml",
                      .field = "gpu",
                      .message = "is missing",
                      .allowed = "a name of scenarios/gpus"});
  }
  const Gpu gpu = load_gpu(all.meta.gpu);
  const Predictor predictor = simulated_predictor(
      "gains", Fidelity::hierarchy, measured_models(all),
      [&gpu](const std::string&) -> const Gpu& { return gpu; }, std::move(tiles));
  std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // of "folder/"
  const std::string name = path.filename().string();
  const bool earlier = is_of_earlier_kernels(all.meta);
  std::vector<MeasuredGain> gains(pairs.size());
  parallel_for(pairs.size(), [&](std::size_t i) {
    const PairOfBlocks& p = pairs[i];
    gains[i] = {
        .folder = name,
        .block = p.one.block,
        .measured = p.other.time.median / p.one.time.median,
        .predicted = predictor.block(p.other.block).time / predictor.block(p.one.block).time,
        .earlier_kernels = earlier};
  });
  return gains;
}

bool is_of_earlier_kernels(const MeasurementMeta& meta) {
  return std::ranges::any_of(
      meta.notes, [](const std::string& note) { return note.starts_with(kEarlierKernels); });
}

bool wrong_order(const MeasuredGain& gain) {
  return has_order(gain) && (gain.predicted > 1) != (gain.measured > 1);
}

GainAgreement agreement_of(std::span<const MeasuredGain> gains) {
  GainAgreement a{.cases = gains.size()};
  if (gains.empty()) return a;
  const auto n = static_cast<double>(gains.size());
  double x = 0, y = 0, xx = 0, xy = 0, error = 0, errors = 0;
  for (const MeasuredGain& g : gains) {
    const double p = std::log(g.predicted), m = std::log(g.measured);
    x += p, y += m, xx += p * p, xy += p * m;
    error += m - p, errors += (m - p) * (m - p);
    if (has_order(g)) ++a.orders;
    if (wrong_order(g)) ++a.wrong;
  }
  a.mean_predicted = std::exp(x / n) - 1;
  a.mean_measured = std::exp(y / n) - 1;
  const double spread = xx - x * x / n;  // of predictions
  if (spread > 0) a.slope = (xy - x * y / n) / spread;
  if (xx > 0) a.slope_through_none = xy / xx;
  // The difference of equal sums may be a little below 0.
  if (gains.size() > 1) a.spread = std::sqrt(std::max(0.0, errors - error * error / n) / (n - 1));
  return a;
}

}  // namespace fuseline
