#include "sim/kernels/codes_time.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "sim/gpu/code_rate.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/columns_time.h"

namespace fuseline {

namespace {

constexpr std::int64_t kCopyColumns = 8;   // of A, 16 bytes
constexpr std::int64_t kColumnWarps = 4;   // side by side, with 32 columns each
constexpr std::int64_t kGroupsOfWarp = 4;  // of 8 columns of the result
constexpr std::int64_t kGroupsOfTile = kColumnWarps * kGroupsOfWarp;
constexpr std::int64_t kRowsOfStrip = 16;  // which one warp stores
constexpr std::int64_t kHalvesOfStrip = 2;

// Loads of scales by all warps that take one chunk of K. A lane has 128 bits of a row at a time,
// and a scale for each of its groups of columns; formats with zero points have one beside each.
std::int64_t scale_loads_of_chunk(const GemmProblem& problem, const GemmTile& tile,
                                  std::int64_t bits) {
  if (!problem.weight.scaled_within_rows()) return 0;
  // A chunk's one scale comes once for many sums; nothing is rounded for it.
  if (problem.weight.scales_sums() && !problem.activation.quantised()) return 0;
  const std::int64_t unit = codes_chunk(bits) / 4;
  const std::int64_t scales = problem.weight.group % unit == 0 ? 1 : unit / kCodesTogether;
  const auto is_zero = [](const ScaleTensor& t) { return t.kind == ScaleKind::zero_point; };
  const std::vector<ScaleTensor> beside = problem.weight.beside(problem.n, problem.k);
  const std::int64_t kinds = std::ranges::any_of(beside, is_zero) ? 2 : 1;
  // Where A is codes too, the sums of a chunk are multiplied by the scales of A's rows.
  const std::int64_t of_a = problem.activation.scaled_within_rows()
                                ? kColumnWarps * kHalvesOfStrip * ceil_div(tile.m, kRowsOfStrip)
                                : 0;
  return kGroupsOfTile * scales * kinds + of_a;
}

// What the epilogue waits for in one tile. A warp stores its rows slab by slab, and loads what a
// slab needs when it comes to it; what rows need it loads once.
std::int64_t epilogue_waits(const GemmProblem& problem) {
  const std::int64_t slabs = kCodesColumns / (kCodesTogether * problem.needs.slab_groups);
  std::int64_t waits = 0;
  for (const EpilogueStream& stream : problem.epilogue)
    if (!stream.store) waits += stream.width == 1 ? 1 : slabs;
  return waits;
}

struct WaveParts {
  double lanes, waits, hbm;  // seconds
  [[nodiscard]] double sum() const { return lanes + waits + hbm; }
};

WaveParts time_of(const GemmProblem& problem, const GemmTile& tile, const GemmWave& wave,
                  const Gpu& gpu, double clock) {
  const CodesConstants& c = gpu.constants.codes;
  const CodesWork work = codes_work(problem, tile, wave.blocks, gpu);
  const double rate = gpu.hbm_bandwidth_sustained.value() * gpu.constants.gemm.hbm_fraction;
  return {.lanes = (work.copies * c.copy_cycles + work.scale_loads * c.scale_cycles +
                    work.rows * c.row_cycles) /
                   clock,
          .waits = work.waits * c.wait_cycles / clock,
          .hbm = (wave.hbm.read + wave.hbm.write).as_double() / rate};
}

}  // namespace

CodesWork codes_work(const GemmProblem& problem, const GemmTile& tile, std::int64_t blocks,
                     const Gpu& gpu) {
  const std::int64_t bits = size_of(problem.weight.element()).bits();
  const std::int64_t multiprocessors =
      std::max<std::int64_t>(1, blocks_at_once(tile, gpu) / tile.blocks_per_sm);
  const auto together = static_cast<double>(ceil_div(blocks, multiprocessors));
  const std::int64_t turns = codes_turns(tile, problem.k, bits);
  const std::int64_t chunks = kCodesWarpsAlongK * turns;
  const std::int64_t ahead = tile.m <= kCodesDeepTile ? 2 : 1;
  CodesWork work;
  // What copies cost stands for all that is done for each 16 bytes of A. The lowest tile multiplies
  // with half as many instructions, which have 16 rows of weights instead of 8.
  const double share = tile.m == kCodesLowestTile ? 0.5 : 1;
  work.copies =
      share * together * static_cast<double>(tile.m * chunks * codes_chunk(bits) / kCopyColumns);
  work.scale_loads =
      together * static_cast<double>(chunks * scale_loads_of_chunk(problem, tile, bits));
  // Sums of rows that exist are added up and stored.
  const std::int64_t rows = problem.groups.empty() ? std::min(tile.m, problem.m) : tile.m;
  work.rows = together * static_cast<double>(rows);
  work.waits = static_cast<double>(ceil_div(turns, ahead) + epilogue_waits(problem));
  return work;
}

GemmTime time_codes(const GemmProblem& problem, const GemmTile& tile,
                    const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor) {
  FUSELINE_ASSERT(clock_factor > 0 && clock_factor <= 1, "clock factor");
  if (tile.whole_depth) return time_columns(problem, tile, waves, gpu, clock_factor);
  const GemmConstants& constants = gpu.constants.gemm;
  const double clock = gpu.sm_clock.value() * clock_factor;
  GemmTime result;
  const Seconds start =
      std::max(Seconds(),
               constants.start - constants.hot_start * (waves.empty() ? 0.0 : waves.front().found));
  result.launch = gpu.tiny_kernel + start;
  if (tile.cluster_k > 1) result.launch += gpu.constants.codes.cluster;
  result.time = result.launch;
  std::array<double, 6> set_by{};  // seconds by Bound
  const auto set = [&set_by](Bound bound) -> double& {
    return set_by[static_cast<std::size_t>(bound)];
  };
  set(Bound::launch) = result.launch.value();
  for (const GemmWave& wave : waves) {
    const WaveParts t = time_of(problem, tile, wave, gpu, clock);
    result.time += Seconds(t.sum());
    result.smem += Seconds(t.lanes);
    result.hbm += Seconds(t.hbm);
    result.l2 += Seconds((wave.operands + wave.epilogue).as_double() /
                         (gpu.l2_bandwidth.value() * clock_factor * constants.own_l2_fraction));
    set(Bound::smem) += t.lanes;
    // Whoever waits, waits for memory.
    set(Bound::hbm) += t.hbm + t.waits;
  }
  const double flops = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                       static_cast<double>(problem.total_depth());
  result.tensor = Seconds(flops / (gpu.tensor_bf16.value() * clock_factor));
  result.bound = static_cast<Bound>(
      std::distance(set_by.begin(), std::max_element(set_by.begin(), set_by.end())));
  return result;
}

Seconds quick_codes_time(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  std::int64_t tiles = ceil_div(problem.n, tile.n);
  if (problem.groups.empty()) {
    tiles *= ceil_div(problem.m, tile.m);
  } else {
    std::int64_t below = 0;
    for (const std::int64_t rows : problem.groups) below += ceil_div(rows, tile.m);
    tiles *= below;
  }
  const std::int64_t blocks = tiles * tile.cluster_k;
  std::int64_t out = 0;
  for (const EpilogueStream& stream : problem.epilogue)
    out += stream.height * stream.width * stream.matrix.element;
  const auto k = static_cast<double>(problem.k);
  const auto rows = static_cast<double>(problem.m);
  const auto columns = static_cast<double>(problem.n * problem.products());
  const double bytes = k * rows *
                           (problem.a.matrix.element.as_double() +
                            problem.activation.scale_bytes_per_element(problem.k)) +
                       k * columns *
                           (problem.b.matrix.element.as_double() +
                            problem.weight.scale_bytes_per_element(problem.k)) +
                       static_cast<double>(out);
  const std::int64_t most = blocks_at_once(tile, gpu);
  std::vector<GemmWave> waves;
  for (std::int64_t left = blocks; left > 0; left -= most) {
    GemmWave wave;
    wave.blocks = std::min(left, most);
    wave.hbm.read = Bytes(static_cast<std::int64_t>(bytes * static_cast<double>(wave.blocks) /
                                                    static_cast<double>(blocks)));
    waves.push_back(wave);
  }
  return time_codes(problem, tile, waves, gpu, 1.0).time;
}

}  // namespace fuseline
