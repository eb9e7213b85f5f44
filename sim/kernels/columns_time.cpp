#include "sim/kernels/columns_time.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "sim/kernels/codes_columns.h"

namespace fuseline {

namespace {

constexpr std::int64_t kColumnsOfCopy = 8;  // of A, 16 bytes

struct LoopParts {
  double hbm, fetch, convert;  // seconds
  [[nodiscard]] double longest() const { return std::max({hbm, fetch, convert}); }
};

LoopParts loop_of(const ColumnsWork& work, const GemmWave& wave, const Gpu& gpu, double clock) {
  const CodesConstants& c = gpu.constants.codes;
  const double rate = gpu.hbm_bandwidth_sustained.value() * gpu.constants.gemm.hbm_fraction;
  return {.hbm = (wave.hbm.read + wave.hbm.write).as_double() / rate,
          .fetch = work.code_bytes / (c.column_bytes_per_cycle * clock),
          .convert = work.of_groups ? work.codes / (c.column_codes_per_cycle * clock) : 0.0};
}

}  // namespace

ColumnsWork columns_work(const GemmProblem& problem, const GemmTile& tile) {
  ColumnsWork work;
  work.copies = static_cast<double>(problem.m * ceil_div(problem.k, kColumnsOfCopy));
  work.codes = static_cast<double>(tile.n * ceil_div(problem.k, tile.k) * tile.k);
  work.code_bytes =
      static_cast<double>(std::min(tile.n, problem.n) * problem.k) *
      (problem.b.matrix.element.as_double() + problem.weight.scale_bytes_per_element(problem.k));
  work.of_groups = problem.weight.scaled_within_rows();
  work.meets = problem.needs.row_sums > 0;
  return work;
}

GemmTime time_columns(const GemmProblem& problem, const GemmTile& tile,
                      const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor) {
  FUSELINE_ASSERT(clock_factor > 0 && clock_factor <= 1, "clock factor");
  const GemmConstants& constants = gpu.constants.gemm;
  const CodesConstants& codes = gpu.constants.codes;
  const double clock = gpu.sm_clock.value() * clock_factor;
  const ColumnsWork work = columns_work(problem, tile);
  GemmTime result;
  result.launch =
      gpu.tiny_kernel +
      std::max(Seconds(),
               constants.start - constants.hot_start * (waves.empty() ? 0.0 : waves.front().found));
  result.time = result.launch;
  std::array<double, 6> set_by{};  // seconds by Bound
  const auto set = [&set_by](Bound bound) -> double& {
    return set_by[static_cast<std::size_t>(bound)];
  };
  set(Bound::launch) = result.launch.value();
  const Seconds meeting = work.meets ? codes.column_meeting : Seconds();
  const Seconds copies(work.copies * codes.column_copy_cycles / clock);
  for (const GemmWave& wave : waves) {
    const LoopParts loop = loop_of(work, wave, gpu, clock);
    result.time += codes.column_start + copies + meeting + Seconds(loop.longest());
    result.epilogue += meeting;
    result.smem += copies + Seconds(loop.convert);
    result.hbm += Seconds(loop.hbm);
    result.l2 += Seconds(loop.fetch);
    // Whoever waits for the first codes, waits for memory.
    set(Bound::hbm) += codes.column_start.value();
    set(Bound::smem) += copies.value();
    set(loop.longest() == loop.hbm     ? Bound::hbm
        : loop.longest() == loop.fetch ? Bound::l2
                                       : Bound::smem) += loop.longest();
  }
  const double flops = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                       static_cast<double>(problem.k);
  result.tensor = Seconds(flops / (gpu.tensor_bf16.value() * clock_factor));
  result.bound = static_cast<Bound>(
      std::distance(set_by.begin(), std::max_element(set_by.begin(), set_by.end())));
  return result;
}

}  // namespace fuseline
