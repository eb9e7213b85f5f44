#include "sim/kernels/gemm_time.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "sim/kernels/codes_time.h"
#include "sim/kernels/gemm_wave_time.h"

namespace fuseline {
namespace {

constexpr std::int64_t kOddCluster = 3;  // blocks of our own mainloop's clusters along K

// Of one of these waves: behind the last one nothing is left to hide its epilogue, and behind all
// others clusters start anew.
WaveTime time_within(const std::vector<GemmWave>& waves, const GemmWave& wave,
                     const WaveModel& model) {
  WaveTime t = time_of(wave, model);
  if (&wave == &waves.back())
    t.hidden = 0;
  else
    t.epilogue += model.restart_seconds;
  return t;
}

}  // namespace

GemmTime time_gemm(const GemmProblem& problem, const GemmTile& tile,
                   const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor) {
  FUSELINE_ASSERT(clock_factor > 0 && clock_factor <= 1, "clock factor");
  if (tile.dequantises) return time_codes(problem, tile, waves, gpu, clock_factor);
  const WaveModel model(problem, tile, gpu, clock_factor);
  GemmTime result;
  const auto launches = static_cast<double>(problem.launches());
  const Seconds start = std::max(
      Seconds(), gpu.constants.gemm.start -
                     gpu.constants.gemm.hot_start * (waves.empty() ? 0.0 : waves.front().found));
  result.launch = launches * (gpu.tiny_kernel + start) + (launches - 1) * gpu.constants.launch.gap;
  result.time = result.launch;
  std::array<double, 6> set_by{};  // seconds by Bound
  set_by[static_cast<std::size_t>(Bound::launch)] = result.launch.value();
  const Seconds once(model.table_seconds + model.last_meeting_seconds);
  result.time += once;
  result.epilogue += once;
  for (const GemmWave& wave : waves) {
    const WaveTime t = time_within(waves, wave, model);
    result.time += Seconds(t.mainloop + t.epilogue - t.hidden);
    result.tensor += Seconds(t.tensor);
    result.l2 += Seconds(std::max(t.l2, t.fetch));
    result.hbm += Seconds(t.hbm);
    result.smem += Seconds(t.smem);
    result.epilogue += Seconds(t.epilogue);
    set_by[static_cast<std::size_t>(t.bound)] += t.mainloop;
  }
  result.bound = static_cast<Bound>(
      std::distance(set_by.begin(), std::max_element(set_by.begin(), set_by.end())));
  return result;
}

std::vector<WaveSpan> wave_spans(const GemmProblem& problem, const GemmTile& tile,
                                 const std::vector<GemmWave>& waves, const Gpu& gpu) {
  const WaveModel model(problem, tile, gpu, 1.0);
  std::vector<WaveSpan> spans;
  spans.reserve(waves.size());
  for (const GemmWave& wave : waves) {
    const WaveTime t = time_within(waves, wave, model);
    spans.push_back({Seconds(t.mainloop),
                     Seconds(t.epilogue - t.hidden + (spans.empty() ? model.table_seconds : 0.0))});
  }
  if (!spans.empty()) spans.back().epilogue += Seconds(model.last_meeting_seconds);
  return spans;
}

Bytes hbm_bytes_of_step(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (tile.dequantises) return Bytes();
  const WaveModel model(problem, tile, gpu, 1.0);
  return Bytes(static_cast<std::int64_t>(
      std::max({model.step_seconds, model.fetch_seconds, model.convert_seconds}) * model.hbm_rate));
}

Seconds reduction_time(Bytes l2, Bytes hbm, const Gpu& gpu) {
  const GemmConstants& constants = gpu.constants.gemm;
  return gpu.tiny_kernel + constants.reduction +
         std::max(l2 / (gpu.l2_bandwidth * constants.reduction_fraction),
                  hbm / (gpu.hbm_bandwidth_sustained * constants.hbm_fraction));
}

std::int64_t blocks_at_once(const GemmTile& tile, const Gpu& gpu) {
  const std::int64_t cluster = tile.cluster();
  const GemmConstants& constants = gpu.constants.gemm;
  double fraction = cluster >= constants.packed_cluster ? constants.packed_fraction : 1.0;
  if (tile.cluster_k == kOddCluster) fraction = std::min(fraction, constants.odd_packed_fraction);
  const auto usable = static_cast<std::int64_t>(static_cast<double>(gpu.sm_count) * fraction);
  return std::max(cluster, tile.blocks_per_sm * usable / cluster * cluster);
}

}  // namespace fuseline
