#include "sim/kernels/epilogue_needs.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "model/operators/operator_table.h"
#include "model/primitives/group_reduce.h"
#include "model/primitives/map.h"
#include "model/primitives/online_log_sum_exp.h"
#include "model/primitives/parts.h"
#include "model/primitives/placement.h"
#include "model/primitives/tile_reduce.h"

namespace fuseline {

namespace {

constexpr int kMostGroups = 8;  // of 8 accumulator columns in a slab
constexpr std::int64_t kSlabCols = 64;
constexpr std::int64_t kThreadsOfGroup = 128;
// Of the accumulator, a thread has two rows, and two columns in each of the 8 groups of a slab.
constexpr std::int64_t kThreadRows = 2;
constexpr std::int64_t kThreadCols = 2 * kMostGroups;
// Registers of tile values that fit beside 128 accumulators, found with the compiler (CUDA 13.0).
constexpr int kRoomyRegisters = 60;
// Of the 232 registers of a thread that multiplies, those that hold tile values; addresses, row
// vectors and the like take the rest.
constexpr std::int64_t kValueRegisters = 216;
// Shared memory that two consumers' store buffers take.
constexpr std::int64_t kStoreBytes = 33 * 1024;
constexpr std::int64_t kDeepestPipeline = 12;
constexpr std::int64_t kLeastStages = 4;  // of a block that has a part of K
// Turned tiles: registers that accumulators and values may take together (CUDA 13.0), and rows of
// what the copy engine loads at once.
constexpr std::int64_t kTurnedRegisters = 184;
constexpr std::int64_t kMostAccumulators = 160;
// The same with tables on their way.
constexpr std::int64_t kTableRegisters = 192;
constexpr std::int64_t kTallestBox = 256;
constexpr std::int64_t kLeastTurnedStages = 3;
constexpr std::int64_t kMostSlabStages = 2;
// Sums down the columns of a turned tile: registers that accumulators and values may take together
// (CUDA 13.0), those of each sum, and bytes that hold a number of each of four warps of both
// consumers for 64 columns.
constexpr std::int64_t kSummingRegisters = 152;
constexpr std::int64_t kRegistersOfSum = 8;
constexpr std::int64_t kScratchOfSum = 2 * 4 * kSlabCols * 4;

// The registers of the values that wait across a step together, where they are most.
int most_live(const Placement& placement, const ValueAnalysis& values) {
  std::int64_t most = 0;
  for (const int step : placement.barriers) {
    std::int64_t sum = 0;
    for (const InRegisters& stay : placement.registers)
      if (stay.first <= step && step <= stay.last)
        sum += values.numbers(stay.value, kThreadRows, kThreadCols);
    most = std::max(most, sum);
  }
  return static_cast<int>(most);
}

// Functions that kernels bring along may take many registers for each element (erf, softplus): a
// compiler that works on all elements of a wide slab at a time would spill.
bool brings_functions(const Program& program) {
  return std::ranges::any_of(program.body, [](const Primitive& p) {
    const auto* map = p.as<Map>();
    return map != nullptr && map->fn->device != nullptr;
  });
}

bool sums_groups(const Program& program) {
  return std::ranges::any_of(program.body, [](const Primitive& p) { return p.is<GroupReduce>(); });
}

bool only_stores(const Program& program, const ValueAnalysis& values) {
  if (program.body.size() != 1) return false;
  const Primitive& store = program.body.front();
  const std::vector<Access> accesses = store.accesses();
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  return gemm != nullptr && accesses.size() == 1 && accesses.front().store &&
         accesses.front().reach == Reach::tile && !accesses.front().accumulate &&
         accesses.front().operand.cols == gemm->N && values.columns_each(store.uses().front()) == 1;
}

int count_tables(const Program& program) {
  return static_cast<int>(std::ranges::count_if(program.body, [](const Primitive& p) {
    return std::ranges::any_of(p.accesses(),
                               [](const Access& a) { return a.reach == Reach::table; });
  }));
}

// Whether loads of all tables begin ahead (cuda/emit/epilogue_source.cpp): vectors of 16-bit
// numbers, for parts that begin where the widest slabs do, since one slab may meet two parts
// otherwise. More than two tables would not fit the registers: those of norms of heads and RoPE
// spilled.
bool loads_tables_early(const Program& program, const Graph& graph) {
  const EpilogueParts parts = parts_of(program);
  const auto begins = [&](Value table) {
    for (std::size_t i = 0; i < program.body.size(); ++i)
      if (std::ranges::count(program.body[i].uses(), table) > 0 &&
          parts.begin(parts.home[i]) % kSlabCols != 0)
        return false;
    return true;
  };
  constexpr int kMostTables = 2;
  return count_tables(program) <= kMostTables &&
         std::ranges::all_of(program.body, [&](const Primitive& p) {
           return std::ranges::all_of(p.accesses(), [&](const Access& a) {
             return a.reach != Reach::table ||
                    (a.period == 0 && graph.tensor(a.operand.tensor).dtype != Dtype::fp32 &&
                     a.operand.cols % 8 == 0 && begins(p.defines().front()));
           });
         });
}

bool rows_in_runs(const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm != nullptr && gemm->a.at.run > 1) return true;
  return std::ranges::any_of(program.body, [](const Primitive& p) {
    return std::ranges::any_of(p.accesses(), [](const Access& a) {
      return a.store && a.reach == Reach::tile && a.operand.at.run > 1;
    });
  });
}

// Whether another map computes this one on its way.
bool held(const Program& program, const Map& map) {
  return std::ranges::any_of(program.body, [&map](const Primitive& p) {
    const auto* other = p.as<Map>();
    return other != nullptr && other->fn->holds != nullptr && *other->fn->holds == map.fn &&
           other->in == map.in;
  });
}

// Instructions for each element of the product. One number a row or a column costs next to nothing,
// and so do numbers that are alike in a whole group of columns, which a thread computes once.
double instructions_of(const Program& program, const ValueAnalysis& values) {
  const EpilogueParts parts = parts_of(program);
  std::set<Value> alike;
  double sum = 0;
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    const Primitive& p = program.body[i];
    if (p.defines().empty()) continue;
    const Value made = p.defines().back();
    const Form form = values.form(made);
    if (form != Form::tile && form != Form::table) continue;
    const std::vector<Value> uses = p.uses();
    const auto is_alike = [&](Value v) { return alike.contains(v); };
    const bool once =
        std::ranges::any_of(uses, is_alike) && std::ranges::all_of(uses, [&](Value v) {
          return is_alike(v) || values.form(v) == Form::per_row;
        });
    if (once || p.is<GroupReduce>()) alike.insert(made);
    if (once) continue;
    if (const auto* map = p.as<Map>(); map != nullptr && held(program, *map)) continue;
    double columns = static_cast<double>(values.width(made));
    if (form == Form::table) {
      // A table is loaded anew for each of the values that it meets.
      columns = 0;
      for (const Value v : values.partners(made)) columns += static_cast<double>(values.width(v));
    }
    sum += p.instructions() * columns;
  }
  return sum / static_cast<double>(parts.whole);
}

// A turned tile: each of the two consumers has half of its columns, and all of its rows, which come
// through shared memory into the threads that the epilogue wants them in.
bool fits_turned(const EpilogueNeeds& needs, const GemmTile& tile, std::int64_t shared_bytes) {
  const std::int64_t columns = tile.n / 2;
  const std::int64_t accumulators = tile.m * columns / kThreadsOfGroup;
  const std::int64_t stage_bytes = (tile.m + tile.n) * 128;
  if (needs.rows_in_runs || accumulators > kMostAccumulators ||
      (shared_bytes - kStoreBytes - column_scratch(needs)) / stage_bytes < kLeastTurnedStages)
    return false;
  if (needs.only_stores) return true;
  // Tables that are loaded where they are used are slow: qkv with RoPE took 16 to 23 % longer than
  // predicted in each of five blocks on an H200. Loads that begin before the sums turn cost nothing
  // that was seen (docs/measuring.md).
  if (needs.late_tables) return false;
  if (needs.reduces_columns && !(needs.sums_of_any_rows && tile.m >= partial_tile)) return false;
  // Where each consumer has half of the columns of a sum along rows, one of them joins both.
  const bool halves = columns == kSlabCols && needs.row_partial_cols == partial_tile;
  if (halves ? needs.whole_partials : columns % std::max(needs.row_partial_cols, kSlabCols) != 0)
    return false;
  // Wider groups take a pass ahead of the epilogue, over sums that have not changed their threads.
  if (columns % needs.column_group != 0 || needs.column_group > 8 * needs.slab_groups) return false;
  const std::int64_t registers = accumulators + needs.live_registers;
  if (registers > kTurnedRegisters) return false;
  if (needs.loads_tables && registers + needs.table_registers > kTableRegisters) return false;
  if (needs.reduces_columns && registers + needs.column_sums * kRegistersOfSum > kSummingRegisters)
    return false;
  if (needs.tile_loads > 0 && tile.m > kTallestBox) return false;
  // What a slab loads takes two stages at most.
  const std::int64_t boxes = (stage_bytes - needs.col_loads * 256) / (tile.m * 128);
  return needs.tile_loads <= kMostSlabStages * boxes;
}

// Whether all that read the partial sums down columns which the program leaves add them up.
bool only_adds_up(const Program& program, const Graph& graph) {
  return std::ranges::all_of(program.body, [&](const Primitive& p) {
    return std::ranges::all_of(p.accesses(), [&](const Access& a) {
      if (a.reach != Reach::partials || a.along != Axis::cols) return true;
      const std::vector<OpId> readers = graph.consumers(a.operand.tensor);
      return !readers.empty() && std::ranges::all_of(readers, [&](OpId id) {
        return graph.op(id).kind->finishes == Sums::columns;
      });
    });
  });
}

}  // namespace

int slab_groups_of(const EpilogueNeeds& needs, const GemmTile& tile) {
  // Two consumers: of ten programs in seven tiles of them, those that spilled take more
  // (CUDA 13.0).
  constexpr std::int64_t kWideUpright = 96, kWideTurned = 72;
  constexpr std::int64_t kWideUprightRegisters = 192, kWideTurnedRegisters = 175;
  const std::int64_t accumulators = tile.m * tile.n / 2 / kThreadsOfGroup;
  const std::int64_t registers = accumulators + needs.wide_registers;
  const std::int64_t sums = needs.column_sums * kRegistersOfSum;
  const bool room = tile.turned()
                        ? accumulators <= kWideTurned || registers + sums <= kWideTurnedRegisters
                        : accumulators <= kWideUpright || registers <= kWideUprightRegisters;
  const bool wide = needs.wide_registers > 0 && tile.m >= partial_tile && room;
  return wide ? kMostGroups : needs.slab_groups;
}

std::int64_t column_scratch(const EpilogueNeeds& needs) {
  return needs.column_sums * kScratchOfSum;
}

EpilogueNeeds epilogue_needs(const Program& program, const Graph& graph) {
  EpilogueNeeds needs = epilogue_needs(program);
  needs.sums_of_any_rows = needs.reduces_columns && only_adds_up(program, graph);
  needs.late_tables = needs.loads_tables && !loads_tables_early(program, graph);
  return needs;
}

EpilogueNeeds epilogue_needs(const Program& program) {
  const ValueAnalysis values = analyse(program);
  const Placement placement = placement_of(program, values);
  EpilogueNeeds needs;
  for (const Primitive& primitive : program.body) {
    // Groups are counted in columns of the value that they are made of.
    const std::vector<Value> uses = primitive.uses();
    const std::int64_t each = uses.empty() ? 1 : values.columns_each(uses.front());
    needs.column_group = std::lcm(needs.column_group, each * primitive.demands().column_group);
  }
  for (const ThroughShared& load : placement.shared) {
    if (load.reach == Reach::tile) needs.tile_loads += load.each == 4 ? 2 : 1;
    if (load.reach == Reach::col_numbers) ++needs.col_loads;
  }
  for (const LeftPartials& left : placement.partials) {
    if (left.along == Axis::cols) {
      needs.reduces_columns = true;
      needs.column_sums += std::max(1, left.each / 2);
    } else {
      needs.row_partial_cols =
          std::max<std::int64_t>(needs.row_partial_cols, partial_tile * 2 / left.each);
      needs.row_sums_of_product = needs.row_sums_of_product && left.each == 2;
    }
  }
  for (const Primitive& p : program.body)
    for (const Access& access : p.accesses())
      needs.accumulates = needs.accumulates || access.accumulate;
  int summing = 0;
  for (const Primitive& p : program.body)
    if (const auto* sums = p.as<TileReduce>(); sums != nullptr && sums->axis == Axis::rows) {
      needs.row_sums += static_cast<int>(sums->numbers());
      needs.row_sums_of_product = needs.row_sums_of_product && ++summing == 1;
    }
  needs.instructions = instructions_of(program, values);
  // What is no sum has no code for two halves, and where the result has parts, a warp whose columns
  // lie behind a part's end would not take part.
  needs.whole_partials =
      !parts_of(program).parts.empty() ||
      std::ranges::any_of(program.body, [](const Primitive& p) { return p.is<OnlineLogSumExp>(); });
  needs.rows_in_runs = rows_in_runs(program);
  const int tables = count_tables(program);
  needs.loads_tables = needs.late_tables = tables > 0;
  // Two rows of each group of 8 columns, in a thread.
  needs.table_registers = tables * 2 * kMostGroups;
  needs.only_stores = only_stores(program, values);
  const int live = most_live(placement, values);
  if (live > kRoomyRegisters || brings_functions(program)) needs.slab_groups = kMostGroups / 2;
  // What is summed over groups of columns depends on what a slab holds of them.
  if (needs.slab_groups < kMostGroups && !brings_functions(program) && !sums_groups(program))
    needs.wide_registers = live;
  needs.live_registers = live * needs.slab_groups / kMostGroups;
  return needs;
}

bool epilogue_has_tile(const EpilogueNeeds& needs, const GemmTile& tile, bool bulk_copies,
                       std::int64_t shared_bytes) {
  // The epilogue's needs are those of the mainloop whose tiles bulk copies fill.
  return (!bulk_copies || fits(needs, tile, shared_bytes)) && tile.n % needs.column_group == 0;
}

bool fits(const EpilogueNeeds& needs, const GemmTile& tile, std::int64_t shared_bytes) {
  if (tile.turned()) return fits_turned(needs, tile, shared_bytes);
  const std::int64_t stage_bytes = (tile.m + tile.n) * 128;
  if (needs.reduces_columns && tile.m != 128) return false;
  if (tile.n % std::max(needs.row_partial_cols, kSlabCols) != 0) return false;
  const std::int64_t accumulators = 64 * tile.n / kThreadsOfGroup;
  if (accumulators + needs.live_registers > kValueRegisters) return false;
  if (needs.tile_loads * tile.m * 128 + needs.col_loads * 256 > stage_bytes) return false;
  // Tiles of 64 rows are made in turns by two groups of threads, and what a tile's slabs load must
  // fit the ring beside the other's operands.
  const bool loads = needs.tile_loads + needs.col_loads > 0;
  const std::int64_t partial_sums = (tile.cluster_k - 1) * tile.m * tile.n * 4;
  const std::int64_t stages =
      std::min(kDeepestPipeline, (shared_bytes - kStoreBytes - partial_sums) / stage_bytes) / 2 * 2;
  if (tile.cluster_k > 1 && (tile.m != 64 || stages < kLeastStages)) return false;
  return tile.m != 64 || !loads || tile.n / kSlabCols < stages;
}

}  // namespace fuseline
