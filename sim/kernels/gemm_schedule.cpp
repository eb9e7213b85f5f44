#include "sim/kernels/gemm_schedule.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace fuseline {

std::int64_t own_loaded_rows(std::int64_t tile_m, std::int64_t m) {
  if (tile_m != 64) return tile_m;
  std::int64_t rows = 8;
  while (rows < std::min(m, tile_m)) rows *= 2;
  return rows;
}

std::int64_t absent_rows(const GemmProblem& problem, const GemmTile& tile, std::int64_t rows) {
  constexpr std::int64_t kLowTileRows = 64;
  if (problem.library || tile.turned() || tile.m <= kLowTileRows || !problem.groups.empty() ||
      rows <= 0)
    return 0;
  return ceil_div(rows, tile.m) * tile.m - rows;
}

std::vector<UnitRange> GemmSchedule::waves() const {
  const auto count = static_cast<std::int64_t>(units.size());
  std::vector<UnitRange> waves;
  std::size_t next = 0;
  for (std::int64_t begin = 0; begin < count;) {
    if (next < breaks.size() && begin >= breaks[next]) ++next;
    const std::int64_t last = next < breaks.size() ? breaks[next] : count;
    waves.push_back({begin, std::min(last, begin + units_per_wave)});
    begin = waves.back().end;
  }
  return waves;
}

namespace {

// The units that would be alone in the last wave, each as tail_parts units, ahead of the others.
void share_tail(GemmSchedule& schedule, std::int64_t k, const GemmTile& tile) {
  const std::int64_t rest = std::ssize(schedule.units) % schedule.units_per_wave;
  if (rest == 0) return;
  const std::int64_t steps = ceil_div(k, tile.k);
  std::vector<GemmUnit> units;
  for (std::int64_t part = 0; part < tile.tail_parts; ++part) {
    for (std::int64_t i = 0; i < rest; ++i) {
      units.push_back(schedule.units[static_cast<std::size_t>(i)]);
      units.back().k_begin = part * steps / tile.tail_parts * tile.k;
      units.back().k_end = std::min(k, (part + 1) * steps / tile.tail_parts * tile.k);
    }
  }
  schedule.breaks.push_back(std::ssize(units));
  units.insert(units.end(), schedule.units.begin() + rest, schedule.units.end());
  schedule.units = std::move(units);
}

}  // namespace

std::int64_t raster_group(bool library, const GemmTile& tile, double library_tiles) {
  return library ? static_cast<std::int64_t>(library_tiles)
                 : kOwnRasterClusters * std::max(tile.cluster_m, tile.cluster_n);
}

GemmSchedule schedule_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                           const GemmTile& tile, std::int64_t blocks_at_once,
                           std::int64_t group_tiles) {
  FUSELINE_ASSERT(m > 0 && n > 0 && k > 0 && batch > 0, "empty GEMM");
  FUSELINE_ASSERT(tile.m > 0 && tile.n > 0 && tile.k > 0 && tile.split_k > 0, "empty tile");
  const std::int64_t unit_m = tile.m * tile.cluster_m;
  const std::int64_t unit_n = tile.n * tile.cluster_n;
  const std::int64_t k_steps = ceil_div(k, tile.k);
  const std::int64_t k_per_split = ceil_div(k_steps, tile.split_k) * tile.k;

  // `across`: the direction of the groups; `along`: the direction they are walked in.
  const bool groups_of_m = tile.cluster_m >= tile.cluster_n;
  const std::int64_t across = ceil_div(groups_of_m ? m : n, groups_of_m ? unit_m : unit_n);
  const std::int64_t along = ceil_div(groups_of_m ? n : m, groups_of_m ? unit_n : unit_m);
  const std::int64_t group =
      std::max<std::int64_t>(1, group_tiles / (groups_of_m ? tile.cluster_m : tile.cluster_n));

  GemmSchedule schedule;
  schedule.units_per_wave = std::max<std::int64_t>(1, blocks_at_once / tile.cluster());
  schedule.units.reserve(static_cast<std::size_t>(across * along * batch * tile.split_k));
  const auto add = [&](std::int64_t index, std::int64_t i, std::int64_t j, std::int64_t k_begin) {
    const std::int64_t m_index = groups_of_m ? i : j;
    const std::int64_t n_index = groups_of_m ? j : i;
    schedule.units.push_back({index, m_index * unit_m, std::min(m, (m_index + 1) * unit_m),
                              n_index * unit_n, std::min(n, (n_index + 1) * unit_n), k_begin,
                              std::min(k, k_begin + k_per_split), 0, 0});
  };
  for (std::int64_t index = 0; index < batch; ++index) {
    for (std::int64_t k_begin = 0; k_begin < k; k_begin += k_per_split) {
      bool reversed = false;
      for (std::int64_t first = 0; first < across; first += group, reversed = !reversed) {
        for (std::int64_t step = 0; step < along; ++step) {
          const std::int64_t j = reversed ? along - 1 - step : step;
          const std::int64_t last = std::min(across, first + group);
          for (std::int64_t i = first; i < last; ++i) add(index, i, j, k_begin);
        }
      }
    }
  }
  if (tile.tail_parts > 1) share_tail(schedule, k, tile);
  return schedule;
}

GemmSchedule schedule_groups(const std::vector<std::int64_t>& groups, std::int64_t n,
                             std::int64_t k, const GemmTile& tile, std::int64_t blocks_at_once,
                             std::int64_t group_tiles) {
  GemmSchedule all;
  std::int64_t row = 0;
  std::int64_t row_tile = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    GemmSchedule own = schedule_gemm(groups[g], n, k, 1, tile, blocks_at_once, group_tiles);
    all.units_per_wave = own.units_per_wave;
    for (GemmUnit& unit : own.units) {
      unit.batch = static_cast<std::int64_t>(g);
      unit.m_begin += row;
      unit.m_end += row;
      unit.group_row = row;
      unit.group_tile = row_tile;
      all.units.push_back(unit);
    }
    row += groups[g];
    row_tile += ceil_div(groups[g], tile.m);
  }
  return all;
}

GemmSchedule schedule_calls(const std::vector<StridedBatch>& calls, std::int64_t m, std::int64_t n,
                            std::int64_t k, const GemmTile& tile, std::int64_t blocks_at_once,
                            std::int64_t group_tiles) {
  GemmSchedule all;
  for (const StridedBatch& call : calls) {
    GemmSchedule own = schedule_gemm(m, n, k, call.count, tile, blocks_at_once, group_tiles);
    all.units_per_wave = own.units_per_wave;
    for (GemmUnit& unit : own.units) {
      unit.batch = call.first + unit.batch * call.step;
      all.units.push_back(unit);
    }
    all.breaks.push_back(std::ssize(all.units));
  }
  return all;
}

GemmSchedule schedule_depths(const std::vector<std::int64_t>& depths, std::int64_t m,
                             std::int64_t n, const GemmTile& tile, std::int64_t blocks_at_once,
                             std::int64_t group_tiles) {
  FUSELINE_ASSERT(tile.split_k == 1, "parts of k are not split again");
  GemmSchedule all;
  std::int64_t begin = 0;
  for (std::size_t g = 0; g < depths.size(); ++g) {
    GemmSchedule own = schedule_gemm(m, n, std::max<std::int64_t>(1, depths[g]), 1, tile,
                                     blocks_at_once, group_tiles);
    all.units_per_wave = own.units_per_wave;
    for (GemmUnit& unit : own.units) {
      unit.batch = static_cast<std::int64_t>(g);
      unit.k_begin = begin;
      unit.k_end = begin + depths[g];
      all.units.push_back(unit);
    }
    begin += depths[g];
  }
  return all;
}

}  // namespace fuseline
