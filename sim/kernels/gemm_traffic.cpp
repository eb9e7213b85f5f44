#include "sim/kernels/gemm_traffic.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "model/primitives/basics.h"
#include "sim/kernels/gemm_epilogue_walk.h"
#include "sim/kernels/gemm_wave_reader.h"
#include "sim/kernels/tail_parts.h"

namespace fuseline {
namespace {

// Split-K: the unit's fp32 partial goes to its split's rows of the workspace.
void store_partial(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit,
                   L2Cache& cache) {
  const std::int64_t k_per_split = ceil_div(ceil_div(problem.k, tile.k), tile.split_k) * tile.k;
  const CachedMatrix workspace = partials(problem, tile);
  const std::int64_t base = (unit.batch * tile.split_k + unit.k_begin / k_per_split) *
                            (workspace.rows / (problem.batch * tile.split_k));
  cache.write(workspace, base + unit.m_begin, base + unit.m_end, unit.n_begin, unit.n_end);
}

template <class Visit>
void for_each_unit(const GemmSchedule& schedule, const UnitRange& range, Visit visit) {
  for (std::int64_t i = range.begin; i < range.end; ++i)
    visit(schedule.units[static_cast<std::size_t>(i)]);
}

// Everything of a wave but its HBM traffic, and the panels that it reads.
GemmWave describe_wave(const GemmProblem& problem, const GemmTile& tile,
                       const GemmSchedule& schedule, const UnitRange& range, WaveReader& panels) {
  GemmWave wave;
  panels.clear();
  const auto ends_here = [&](const GemmUnit& unit) {
    return tile.split_k == 1 && !gives_sums_away(problem, tile, unit);
  };
  const auto epilogue_of = [&](const GemmUnit& unit) {
    Bytes out = tail_sum_bytes(problem, tile, unit);
    if (tile.split_k > 1)
      out += Bytes((unit.m_end - unit.m_begin) * (unit.n_end - unit.n_begin) * 4);
    else if (ends_here(unit))
      out += epilogue_bytes(problem, unit);
    return out;
  };
  for_each_unit(schedule, range, [&](const GemmUnit& unit) {
    const std::int64_t height = unit.m_end - unit.m_begin;
    const std::int64_t width = unit.n_end - unit.n_begin;
    const std::int64_t depth = unit.k_end - unit.k_begin;
    panels.add(unit);
    wave.absent_rows = std::max(wave.absent_rows, absent_rows(problem, tile, height));
    wave.blocks += ceil_div(height, tile.m) * ceil_div(width, tile.n) * tile.cluster_k;
    wave.operands +=
        Bytes(depth * height * problem.a.matrix.element + depth * width * problem.b.matrix.element +
              problem.scale_bytes(unit.n_begin, unit.n_end, unit.k_begin, unit.k_end) +
              problem.row_scale_bytes(unit.m_begin, unit.m_end, unit.k_begin, unit.k_end));
    wave.epilogue += epilogue_of(unit);
    // The unit's first thread block is a whole tile, or all there is.
    GemmUnit block = unit;
    block.m_end = std::min(unit.m_end, unit.m_begin + tile.m);
    block.n_end = std::min(unit.n_end, unit.n_begin + tile.n);
    const Bytes sums = tail_sum_bytes(problem, tile, block);
    // Where all parts of a tile add up, each stores a share of it.
    const bool together = adds_together(problem) && is_tail_part(problem, tile, unit);
    const Bytes of_block =
        together ? sums + Bytes(epilogue_bytes(problem, block).value() / tile.tail_parts)
                 : epilogue_of(block);
    if (of_block > wave.block_epilogue) {
      wave.block_epilogue = of_block;
      wave.block_sums = sums;
      wave.block_fetched = ends_here(unit) ? fetched_bytes(problem, block) : Bytes();
    }
    wave.k_steps = std::max(wave.k_steps, ceil_div(ceil_div(depth, tile.k), tile.cluster_k));
  });
  return wave;
}

// The waves that were not walked take the mean traffic of some that were.
void set_repeated(WalkTraffic& traffic) {
  if (!traffic.repeated) return;
  const RepeatedWaves& r = *traffic.repeated;
  HbmTraffic sum;
  for (std::int64_t i = r.like.begin; i < r.like.end; ++i) {
    sum.read += traffic.waves[static_cast<std::size_t>(i)].hbm.read;
    sum.write += traffic.waves[static_cast<std::size_t>(i)].hbm.write;
  }
  const std::int64_t count = std::max<std::int64_t>(1, r.like.end - r.like.begin);
  const HbmTraffic mean{Bytes(sum.read.value() / count), Bytes(sum.write.value() / count)};
  for (std::int64_t i = r.waves.begin; i < r.waves.end; ++i)
    traffic.waves[static_cast<std::size_t>(i)].hbm = mean;
}

}  // namespace

CachedMatrix partials(const GemmProblem& problem, const GemmTile& tile) {
  const std::int64_t rows = ceil_div(problem.m, kChunkEdge) * kChunkEdge;
  return {problem.workspace_tensor, rows * problem.batch * tile.split_k, problem.n, 4};
}

namespace {

// Chunk reads simulated one by one: about 0.03 s, in each of the parts of an L2.
constexpr std::int64_t kChunkReadBudget = 1'000'000;

// Waves [first, last) of those that the schedule has.
WalkTraffic walk_waves(const GemmProblem& problem, const GemmTile& tile,
                       const GemmSchedule& schedule, UnitRange part, L2Cache& cache, double drift) {
  const HbmTraffic before = cache.take_traffic();
  FUSELINE_ASSERT(before.read == Bytes() && before.write == Bytes(), "traffic was not collected");
  const std::vector<UnitRange> ranges = schedule.waves();
  const std::int64_t total = std::min(part.end, std::ssize(ranges));
  const auto range = [&](std::int64_t i) { return ranges[static_cast<std::size_t>(i)]; };
  WalkTraffic traffic;
  std::vector<GemmWave>& waves = traffic.waves;
  waves.reserve(static_cast<std::size_t>(total - part.begin));
  WaveReader panels(problem, drift);
  std::int64_t chunk_reads = 0;
  for (std::int64_t index = part.begin; index < total; ++index) {
    waves.push_back(describe_wave(problem, tile, schedule, range(index), panels));
    GemmWave& wave = waves.back();
    wave.distinct = panels.distinct();
    const std::int64_t tail = index / 4;
    if (chunk_reads > kChunkReadBudget && total - index > 2 * tail) {
      // A very large GEMM repeats itself: the middle takes the traffic of the latter half of the
      // waves so far, and the tail is walked again so that the cache is left with the last tiles.
      FUSELINE_ASSERT(part.begin == 0, "a very large GEMM is walked as a whole");
      const std::int64_t first = index;
      for (; index < total - tail - 1; ++index) {
        waves.push_back(describe_wave(problem, tile, schedule, range(index + 1), panels));
        waves.back().distinct = panels.distinct();
      }
      chunk_reads = std::numeric_limits<std::int64_t>::min() / 2;
      traffic.repeated = {{first, index + 1}, {first / 2, first}};
      continue;
    }
    chunk_reads += panels.read(wave.k_steps * tile.cluster_k * tile.k, index, cache);
    if (index == 0) wave.found = panels.found();
    for_each_unit(schedule, range(index), [&](const GemmUnit& unit) {
      if (is_tail_part(problem, tile, unit)) move_tail_sums(problem, tile, unit, cache);
      if (tile.split_k > 1)
        store_partial(problem, tile, unit, cache);
      else if (!gives_sums_away(problem, tile, unit))
        run_epilogue(problem, unit, cache);
    });
    cache.step_ends({.kind = WalkStep::Kind::units,
                     .begin = range(index).begin,
                     .end = range(index).end,
                     .of = std::ssize(schedule.units)});
    wave.hbm = cache.take_traffic();
    wave.missed = panels.missed();
  }
  set_repeated(traffic);
  return traffic;
}

}  // namespace

std::vector<GemmWave> walk_gemm(const GemmProblem& problem, const GemmTile& tile,
                                const GemmSchedule& schedule, L2Cache& cache, double drift,
                                Bytes hbm_of_step) {
  WalkTraffic traffic = walk_waves(problem, tile, schedule,
                                   {0, std::numeric_limits<std::int64_t>::max()}, cache, drift);
  catch_up(traffic, hbm_of_step);
  return std::move(traffic.waves);
}

void catch_up(WalkTraffic& traffic, Bytes hbm_of_step) {
  if (hbm_of_step == Bytes()) return;
  for (GemmWave& wave : traffic.waves) {
    const Bytes most = std::max(wave.distinct, hbm_of_step * wave.k_steps);
    wave.hbm.read -= std::max(Bytes(), wave.missed - most);
  }
  set_repeated(traffic);
}

namespace {

// Streams every partial and the epilogue's tensors once, row block by row block.
void walk_reduction(const GemmWalk& gemm, L2Cache& cache, WalkTraffic& traffic) {
  const GemmProblem& problem = gemm.problem;
  const CachedMatrix workspace = partials(problem, gemm.tile);
  const std::int64_t stride = workspace.rows / (problem.batch * gemm.tile.split_k);
  for (std::int64_t base = 0; base < workspace.rows; base += stride) {
    cache.read(workspace, base, base + problem.m, 0, problem.n);
  }
  traffic.l2 = checked_product<Bytes>(problem.m, problem.n, problem.batch, gemm.tile.split_k, 4);
  traffic.l2 += run_whole_epilogue(problem, cache);
  cache.discard(problem.workspace_tensor);
  cache.step_ends({.kind = WalkStep::Kind::sums, .begin = 0, .end = 1, .asked = traffic.l2});
  traffic.hbm = cache.take_traffic();
}

}  // namespace

WalkTraffic walk(const GemmWalk& gemm, L2Cache& cache) {
  WalkTraffic traffic =
      walk_waves(gemm.problem, gemm.tile, schedule_of(gemm),
                 {0, std::numeric_limits<std::int64_t>::max()}, cache, gemm.drift);
  if (gemm.tile.split_k > 1) walk_reduction(gemm, cache, traffic);
  return traffic;
}

bool is_walked_in_full(const GemmWalk& gemm, const GemmSchedule& schedule) {
  const GemmProblem& p = gemm.problem;
  std::int64_t reads = 0;
  for (const UnitRange& range : schedule.waves()) {
    // The panels of one product lie within those of the wave's first to last row and column. Thread
    // blocks that drift apart may read them twice.
    std::int64_t apart = 0, rows = p.m, rows_end = 0, cols = p.n, cols_end = 0, depth = 0;
    bool one_product = p.groups.empty();
    std::int64_t batch = -1;
    for_each_unit(schedule, range, [&](const GemmUnit& u) {
      apart +=
          ceil_div(u.m_end - u.m_begin, kChunkEdge) + ceil_div(u.n_end - u.n_begin, kChunkEdge) + 2;
      rows = std::min(rows, u.m_begin), rows_end = std::max(rows_end, u.m_end);
      cols = std::min(cols, u.n_begin), cols_end = std::max(cols_end, u.n_end);
      depth = std::max(depth, u.k_end - u.k_begin);
      one_product = one_product && u.k_begin == 0 && (batch < 0 || batch == u.batch);
      batch = u.batch;
    });
    const std::int64_t together =
        ceil_div(rows_end - rows, kChunkEdge) + ceil_div(cols_end - cols, kChunkEdge) + 2;
    const std::int64_t times = gemm.drift > 0 ? 2 : 1;
    reads +=
        (one_product ? std::min(apart, times * together) : apart) * ceil_div(depth, kChunkEdge);
  }
  return reads <= kChunkReadBudget;
}

WalkTraffic walk(const GemmWalk& gemm, const GemmSchedule& schedule, UnitRange waves,
                 L2Cache& cache) {
  WalkTraffic traffic = walk_waves(gemm.problem, gemm.tile, schedule, waves, cache, gemm.drift);
  const bool ends = waves.end == std::ssize(schedule.waves());
  if (ends && gemm.tile.split_k > 1) walk_reduction(gemm, cache, traffic);
  return traffic;
}

GemmRequested requested_bytes(const GemmProblem& problem, const GemmTile& tile) {
  std::int64_t tiles_m = ceil_div(problem.m, tile.m);
  if (!problem.groups.empty()) {
    tiles_m = 0;
    for (const std::int64_t rows : problem.groups) tiles_m += ceil_div(rows, tile.m);
  }
  const std::int64_t tiles_n = ceil_div(problem.n, tile.n);
  GemmRequested requested;
  const std::int64_t depth = problem.total_depth();
  requested.a = checked_product<Bytes>(problem.m, depth, problem.a.matrix.element, tiles_n);
  requested.b = checked_product<Bytes>(problem.n, depth, problem.b.matrix.element, tiles_m);
  for (std::int64_t n = 0; n < problem.n; n += tile.n)
    requested.scales +=
        Bytes(problem.scale_bytes(n, std::min(problem.n, n + tile.n), 0, problem.k) * tiles_m *
              problem.batch);
  requested.scales += Bytes(problem.row_scale_bytes(0, problem.m, 0, problem.k) * tiles_n);
  for (const EpilogueStream& stream : problem.epilogue) {
    // A tile's region is as high as its rows ask and as wide as its columns ask: the sum over all
    // tiles is a product of two sums.
    std::int64_t rows = 0;
    for (std::int64_t begin = 0; begin < problem.m; begin += tile.m) {
      const OutputRange r =
          asked_by_rows(problem, stream, {begin, std::min(problem.m, begin + tile.m)});
      rows += r.end - r.begin;
    }
    std::int64_t cols = 0;
    for (std::int64_t begin = 0; begin < problem.n; begin += tile.n) {
      const OutputRange c =
          asked_by_cols(problem, stream, {begin, std::min(problem.n, begin + tile.n)});
      cols += c.end - c.begin;
    }
    requested.epilogue.push_back(
        checked_product<Bytes>(rows, cols, problem.batch, stream.matrix.element));
  }
  return requested;
}

}  // namespace fuseline
