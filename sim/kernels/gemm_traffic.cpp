#include "sim/kernels/gemm_traffic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "model/primitives/basics.h"
#include "sim/kernels/gemm_panels.h"
#include "sim/kernels/tail_parts.h"

namespace fuseline {
namespace {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The scales of one depth of a panel.
void read_scales(const GemmProblem& problem, const Panel& panel, std::int64_t k_begin,
                 std::int64_t k_end, L2Cache& cache) {
  if (!panel.of_b) {
    if (!problem.row_scales) return;
    const ScaleRange r =
        problem.activation.beside(ScaleKind::scale, panel.row_begin, panel.row_end, k_begin, k_end);
    cache.read(*problem.row_scales, r.row_begin, r.row_end, r.col_begin, r.col_end);
    return;
  }
  for (const GemmScales& s : problem.scales) {
    const ScaleRange r =
        problem.weight.beside(s.kind, panel.row_begin, panel.row_end, k_begin, k_end);
    const std::int64_t first =
        s.kind == ScaleKind::tensor_scale ? 0 : panel.batch * s.rows_of_group;
    cache.read(s.matrix, first + r.row_begin, first + r.row_end, r.col_begin, r.col_end);
  }
}

void read_panel_step(const GemmOperand& operand, const Panel& panel, std::int64_t k_begin,
                     std::int64_t k_end, L2Cache& cache) {
  const MatrixOrigin origin = operand.origin(panel.batch);
  const Range rows{panel.row_begin, panel.row_end};
  if (operand.transposed) {
    cache.read(operand.matrix, origin.row + k_begin, origin.row + k_end, origin.col + rows.begin,
               origin.col + rows.end);
  } else {
    cache.read(operand.matrix, origin.row + rows.begin, origin.row + rows.end, origin.col + k_begin,
               origin.col + k_end);
  }
}

// The rows (or columns) of an epilogue tensor of `size` that belong to output rows [begin, end) of
// `extent`.
Range addressed(Range output, std::int64_t extent, std::int64_t size, Addressing addressing) {
  if (addressing == Addressing::repeated) {
    if (output.end - output.begin >= size) return {0, size};
    const std::int64_t begin = output.begin % size;
    return {begin, std::min(size, begin + (output.end - output.begin))};
  }
  return {output.begin * size / extent, ceil_div(output.end * size, extent)};
}

struct Region {
  Range rows, cols;
  [[nodiscard]] std::int64_t elements() const {
    return (rows.end - rows.begin) * (cols.end - cols.begin);
  }
};

// What output rows ask of a stream: some of its rows, or, of partials of columns, of its columns.
Range asked_by_rows(const GemmProblem& problem, const EpilogueStream& stream, Range output) {
  if (stream.of_columns)
    return {output.begin / partial_tile,
            std::min(stream.width, ceil_div(output.end, partial_tile))};
  return addressed(output, problem.m, stream.height, stream.rows);
}

// And what output columns ask of it.
Range asked_by_cols(const GemmProblem& problem, const EpilogueStream& stream, Range output) {
  return stream.of_columns ? addressed(output, problem.n, stream.height, stream.rows)
                           : addressed(output, problem.n, stream.width, stream.cols);
}

Region region_of(const GemmProblem& problem, const EpilogueStream& stream, const GemmUnit& unit) {
  Range rows = asked_by_rows(problem, stream, {unit.m_begin, unit.m_end});
  Range cols = asked_by_cols(problem, stream, {unit.n_begin, unit.n_end});
  if (stream.of_columns) std::swap(rows, cols);
  const MatrixOrigin origin = stream.origin(unit.batch);
  return {{rows.begin + origin.row, rows.end + origin.row},
          {cols.begin + origin.col, cols.end + origin.col}};
}

Bytes epilogue_bytes(const GemmProblem& problem, const GemmUnit& unit) {
  Bytes bytes;
  for (const EpilogueStream& stream : problem.epilogue) {
    bytes += Bytes(region_of(problem, stream, unit).elements() * stream.matrix.element);
  }
  return bytes;
}

Bytes fetched_bytes(const GemmProblem& problem, const GemmUnit& unit) {
  Bytes bytes;
  for (const EpilogueStream& stream : problem.epilogue)
    if (is_fetched(stream))
      bytes += Bytes(region_of(problem, stream, unit).elements() * stream.matrix.element);
  return bytes;
}

void run_epilogue(const GemmProblem& problem, const GemmUnit& unit, L2Cache& cache) {
  for (const EpilogueStream& stream : problem.epilogue) {
    const Region region = region_of(problem, stream, unit);
    if (!stream.store) {
      cache.read(stream.matrix, region.rows.begin, region.rows.end, region.cols.begin,
                 region.cols.end);
    } else {
      cache.write(stream.matrix, region.rows.begin, region.rows.end, region.cols.begin,
                  region.cols.end);
    }
  }
}

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

// What of the two operands L2 did not hold, scales included, and what of that were scales.
struct Missed {
  Bytes a, b;
  Bytes scales;
};

// Reads the panels at one depth. Returns the number of blocks of 64 rows.
std::int64_t read_panels(const GemmProblem& problem, const std::vector<Panel>& panels,
                         std::int64_t k, L2Cache& cache, Missed& missed) {
  std::int64_t reads = 0;
  for (const Panel& panel : panels) {
    const std::int64_t k_begin = panel.k_begin + k;
    const std::int64_t k_end = std::min(panel.k_end, k_begin + kChunkEdge);
    if (k_begin >= k_end) continue;
    const Bytes before = cache.read_since_taken();
    read_panel_step(panel.of_b ? problem.b : problem.a, panel, k_begin, k_end, cache);
    const Bytes of_operand = cache.read_since_taken() - before;
    read_scales(problem, panel, k_begin, k_end, cache);
    const Bytes of_both = cache.read_since_taken() - before;
    (panel.of_b ? missed.b : missed.a) += of_both;
    missed.scales += of_both - of_operand;
    reads += panel.blocks();
  }
  return reads;
}

// A wave reads its panels along k, at about the same depth at the same time. Nothing keeps thread
// blocks together: half of them, every other unit, fall behind, and no wave brings them together
// again. Each step is late by chance, so that the distance grows with the root of the way that they
// have gone along k since the kernel began. What they read late L2 may have lost. Where all that is
// read in between fits into a part of L2 the delay changes nothing, and the wave is read in
// lockstep.
class WaveReader {
 public:
  WaveReader(const GemmProblem& problem, double drift)
      : problem_(&problem), of_one_(drift), all_(problem), ahead_(problem), behind_(problem) {}

  void clear() {
    for (WavePanels* panels : {&all_, &ahead_, &behind_}) panels->clear();
    units_ = 0;
    missed_ = {};
  }
  void add(const GemmUnit& unit) {
    all_.add(unit);
    if (of_one_ > 0) (units_ % 2 == 0 ? ahead_ : behind_).add(unit);
    ++units_;
  }
  [[nodiscard]] Bytes distinct() { return bytes_of(*problem_, all_.distinct()); }

  // After read(): of each operand the share that L2 held, and the smaller of them.
  [[nodiscard]] double found() {
    Bytes a, b;
    for (const Panel& panel : all_.distinct()) (panel.of_b ? b : a) += bytes_of(*problem_, {panel});
    const auto held = [](Bytes missed, Bytes all) {
      return 1 - std::min(1.0, missed.as_double() / std::max(1.0, all.as_double()));
    };
    return std::min(held(missed_.a, a), held(missed_.b, b));
  }

  // After read(): what of the operands was missed, scales apart.
  [[nodiscard]] Bytes missed() const { return missed_.a + missed_.b - missed_.scales; }

  // Of so many waves before it. Returns the number of blocks of 64 rows and a step of 64 along k.
  std::int64_t read(std::int64_t depth, std::int64_t waves_before, L2Cache& cache) {
    constexpr double kSurelyKept = 0.25;  // of L2
    const double drift = share_of_way(depth, waves_before);
    const double between = distinct().as_double() * drift;
    const bool drifts =
        units_ > 1 && drift > 0 && between > kSurelyKept * cache.capacity().as_double();
    const std::vector<Panel> none;
    const std::vector<Panel>& first = drifts ? ahead_.distinct() : all_.distinct();
    const std::vector<Panel>& second = drifts ? behind_.distinct() : none;
    std::int64_t reads = 0, late = 0;
    for (std::int64_t k = 0; k < depth; k += kChunkEdge) {
      reads += read_panels(*problem_, first, k, cache, missed_);
      const auto reached = static_cast<std::int64_t>(static_cast<double>(k) * (1 - drift));
      for (; drifts && late < reached; late += kChunkEdge)
        reads += read_panels(*problem_, second, late, cache, missed_);
    }
    for (; drifts && late < depth; late += kChunkEdge)
      reads += read_panels(*problem_, second, late, cache, missed_);
    return reads;
  }

 private:
  // By which who is behind is behind at the end of a wave, in which all go as far as in this one.
  [[nodiscard]] double share_of_way(std::int64_t depth, std::int64_t waves_before) const {
    constexpr double kMost = 0.9;
    const auto way = static_cast<double>(depth);
    return std::min(kMost, of_one_ * std::sqrt(way * static_cast<double>(waves_before + 1)) /
                               std::max(1.0, way));
  }

  const GemmProblem* problem_;
  double of_one_;  // elements of k behind after one element
  WavePanels all_, ahead_, behind_;
  Missed missed_;
  std::int64_t units_ = 0;
};

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

Bytes run_whole_epilogue(const GemmProblem& problem, L2Cache& cache) {
  Bytes bytes;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    for (std::int64_t row = 0; row < problem.m; row += kChunkEdge) {
      const GemmUnit rows{batch, row, std::min(problem.m, row + kChunkEdge), 0, problem.n, 0, 0,
                          0,     0};
      run_epilogue(problem, rows, cache);
      bytes += epilogue_bytes(problem, rows);
    }
  }
  return bytes;
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
    // The panels of one product lie within those of the wave's first to last row and column.
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
    reads += (one_product ? std::min(apart, together) : apart) * ceil_div(depth, kChunkEdge);
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
      const Range r = asked_by_rows(problem, stream, {begin, std::min(problem.m, begin + tile.m)});
      rows += r.end - r.begin;
    }
    std::int64_t cols = 0;
    for (std::int64_t begin = 0; begin < problem.n; begin += tile.n) {
      const Range c = asked_by_cols(problem, stream, {begin, std::min(problem.n, begin + tile.n)});
      cols += c.end - c.begin;
    }
    requested.epilogue.push_back(
        checked_product<Bytes>(rows, cols, problem.batch, stream.matrix.element));
  }
  return requested;
}

}  // namespace fuseline
