#include "sim/kernels/epilogue_needs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "model/primitives/values.h"
#include "sim/kernels/epilogue_parts.h"

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
constexpr std::int64_t kMostStages = 12;
constexpr std::int64_t kLeastStages = 4;  // of a block that has a part of K

// Registers that a value takes from the step that makes it to the last that uses it.
struct Life {
  int registers = 0;
  int first = 0, last = 0;
};

bool is_load(const Primitive& primitive) {
  return primitive.uses().empty() && !primitive.defines().empty();
}

// Walks the body in the order in which the source has it: loads where they are first wanted, what
// works on parts of the columns after what works on all of them.
class Walk {
 public:
  explicit Walk(const Program& program)
      : program_(program), parts_(parts_of(program)), values_(analyse(program)) {
    const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
    FUSELINE_ASSERT(gemm != nullptr, "only GEMM programs have epilogues");
    N_ = gemm->N;
  }

  EpilogueNeeds run() {
    lives_of_[0] = -1;
    for (const Primitive& primitive : program_.body) {
      const std::int64_t group = primitive.demands().column_group;
      needs_.column_group = std::lcm(needs_.column_group, group);
    }
    for (const Primitive& primitive : program_.body)
      if (is_load(primitive)) loaded_[primitive.defines().front()] = &primitive;
    walk_part(-1);
    const int live = most_live();
    if (live > kRoomyRegisters || brings_functions()) needs_.slab_groups = kMostGroups / 2;
    needs_.live_registers = live * needs_.slab_groups / kMostGroups;
    return needs_;
  }

 private:
  // Functions that kernels bring along may take many registers for each element (erf, softplus): a
  // compiler that works on all elements of a wide slab at a time would spill.
  [[nodiscard]] bool brings_functions() const {
    return std::ranges::any_of(program_.body, [](const Primitive& p) {
      const auto* map = p.as<Map>();
      return map != nullptr && map->fn->device != nullptr;
    });
  }
  void walk_part(int part) {
    part_ = part;
    const auto outer = lives_of_;  // what is loaded in a scope ends with it
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      if (parts_.home[i] != part) continue;
      ++step_;
      if (!is_load(program_.body[i])) visit(program_.body[i]);
    }
    for (std::size_t i = 0; i < parts_.parts.size(); ++i)
      if (parts_.parts[i].parent == part) walk_part(static_cast<int>(i));
    if (part >= 0) {
      lives_of_ = outer;
      part_ = parts_.parts[static_cast<std::size_t>(part)].parent;
    }
  }

  [[nodiscard]] std::int64_t part_cols() const {
    return part_ < 0 ? N_ : parts_.parts[static_cast<std::size_t>(part_)].cols;
  }
  // How many columns of a value a thread has in a group, where the part's accumulator has 2; tables
  // repeat along the accumulator's columns.
  [[nodiscard]] int each_of(Value v) const {
    if (values_.form(v) == Form::table) return 2;
    for (const int each : {1, 2, 4})
      if (values_.width(v) * 2 == part_cols() * each) return each;
    FUSELINE_ASSERT(false, "values are half, once or twice as wide as the accumulator");
  }

  // Index into the lives; -1: the value takes no registers of its own.
  int use(Value v) {
    auto it = lives_of_.find(v);
    if (it == lives_of_.end()) {
      const auto load = loaded_.find(v);
      FUSELINE_ASSERT(load != loaded_.end(), "values are defined before they are used");
      load_now(*load->second);
      it = lives_of_.find(v);
    }
    if (it->second >= 0) lives_[static_cast<std::size_t>(it->second)].last = step_;
    return it->second;
  }

  void define(Value v) {
    int& life = lives_of_[v] = -1;
    if (values_.form(v) == Form::per_row) return;
    const std::int64_t registers = values_.numbers(v, kThreadRows, kThreadCols);
    lives_.push_back({static_cast<int>(registers), step_, step_});
    life = static_cast<int>(lives_.size()) - 1;
  }
  // Between two stores or reductions the compiler takes maps element by element; across one, whole
  // values must stay.
  [[nodiscard]] int most_live() const {
    int most = 0;
    for (const int step : barriers_) {
      int sum = 0;
      for (const Life& life : lives_)
        if (life.first <= step && step <= life.last) sum += life.registers;
      most = std::max(most, sum);
    }
    return most;
  }

  void load_now(const Primitive& primitive) {
    const Value out = primitive.defines().front();
    for (const Access& access : primitive.accesses()) {
      if (access.reach == Reach::tile) needs_.tile_loads += each_of(out) == 4 ? 2 : 1;
      if (access.reach == Reach::col_numbers) ++needs_.col_loads;
    }
    define(out);
  }

  void visit(const Primitive& primitive) {
    const std::vector<Value> uses = primitive.uses();
    const std::vector<Access> accesses = primitive.accesses();
    if (std::ranges::any_of(accesses, stores_tile)) barriers_.push_back(step_);
    for (const Value v : uses) use(v);
    if (const auto slice = primitive.demands().slice) {
      lives_of_[primitive.defines().front()] = lives_of_.at(slice->of);
      return;
    }
    for (const Access& access : accesses)
      if (access.reach == Reach::partials) partials(access, uses.front());
    for (const Value v : primitive.defines()) define(v);
  }
  static bool stores_tile(const Access& access) {
    return access.store && (access.reach == Reach::tile || access.reach == Reach::partials);
  }
  void partials(const Access& access, Value reduced) {
    if (access.along == Axis::cols)
      needs_.reduces_columns = true;
    else
      needs_.row_partial_cols =
          std::max<std::int64_t>(needs_.row_partial_cols, partial_tile * 2 / each_of(reduced));
  }

  const Program& program_;
  EpilogueParts parts_;
  ValueAnalysis values_;
  std::int64_t N_ = 0;
  std::map<Value, const Primitive*> loaded_;
  std::map<Value, int> lives_of_;
  int part_ = -1;
  int step_ = 0;
  std::vector<Life> lives_;
  std::vector<int> barriers_;  // steps that other threads take part in
  EpilogueNeeds needs_;
};

}  // namespace

EpilogueNeeds epilogue_needs(const Program& program) { return Walk(program).run(); }

bool fits(const EpilogueNeeds& needs, const GemmTile& tile, std::int64_t shared_bytes) {
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
      std::min(kMostStages, (shared_bytes - kStoreBytes - partial_sums) / stage_bytes) / 2 * 2;
  if (tile.cluster_k > 1 && (tile.m != 64 || stages < kLeastStages)) return false;
  return tile.m != 64 || !loads || tile.n / kSlabCols < stages;
}

}  // namespace fuseline
