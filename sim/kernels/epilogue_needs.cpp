#include "sim/kernels/epilogue_needs.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "sim/kernels/epilogue_parts.h"

namespace fuseline {

namespace {

constexpr int kMostGroups = 8;  // of 8 accumulator columns in a slab
constexpr std::int64_t kSlabCols = 64;
constexpr std::int64_t kThreadsOfGroup = 128;
// Registers of tile values that fit beside 128 accumulators, found with the compiler (CUDA 13.0).
constexpr int kRoomyRegisters = 60;
// Of the 232 registers of a thread that multiplies, those that hold tile values; addresses, row
// vectors and the like take the rest.
constexpr std::int64_t kValueRegisters = 216;
// Shared memory that two consumers' store buffers take.
constexpr std::int64_t kStoreBytes = 33 * 1024;
constexpr std::int64_t kMostStages = 12;
constexpr std::int64_t kLeastStages = 4;  // of a block that has a part of K

// Which thread elements a value has.
enum class Form : std::uint8_t { tile, row, col };

struct Known {
  Form form = Form::tile;
  int each = 2;   // columns of a thread in a group of 8 accumulator columns
  int life = -1;  // index into the lives; -1: takes no registers of its own
};

// Registers that a value takes from the step that makes it to the last that uses it.
struct Life {
  int registers = 0;
  int first = 0, last = 0;
};

// Walks the body in the order in which the source has it: loads where they are first wanted, what
// works on parts of the columns after what works on all of them.
class Walk {
 public:
  explicit Walk(const Program& program) : program_(program), parts_(parts_of(program)) {
    const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
    FUSELINE_ASSERT(gemm != nullptr, "only GEMM programs have epilogues");
    N_ = gemm->N;
  }

  EpilogueNeeds run() {
    known_[0] = {};
    for (const Primitive& primitive : program_.body) {
      if (const auto* t = std::get_if<LoadTile>(&primitive)) loaded_[t->out] = &primitive;
      if (const auto* v = std::get_if<LoadVector>(&primitive)) loaded_[v->out] = &primitive;
      if (const auto* c = std::get_if<LoadTable>(&primitive)) loaded_[c->out] = &primitive;
    }
    walk_part(-1);
    const int live = most_live();
    if (live > kRoomyRegisters) needs_.slab_groups = kMostGroups / 2;
    needs_.live_registers = live * needs_.slab_groups / kMostGroups;
    return needs_;
  }

 private:
  void walk_part(int part) {
    part_ = part;
    const auto outer = known_;  // what is loaded in a scope ends with it
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      if (parts_.home[i] != part) continue;
      ++step_;
      std::visit([this](const auto& p) { visit(p); }, program_.body[i]);
    }
    for (std::size_t i = 0; i < parts_.parts.size(); ++i)
      if (parts_.parts[i].parent == part) walk_part(static_cast<int>(i));
    if (part >= 0) {
      known_ = outer;
      part_ = parts_.parts[static_cast<std::size_t>(part)].parent;
    }
  }

  [[nodiscard]] std::int64_t part_cols() const {
    return part_ < 0 ? N_ : parts_.parts[static_cast<std::size_t>(part_)].cols;
  }
  // How many columns of an operand a thread has in a group, where the part's accumulator has 2.
  [[nodiscard]] int each_of(std::int64_t cols) const {
    for (const int each : {1, 2, 4})
      if (cols * 2 == part_cols() * each) return each;
    FUSELINE_ASSERT(false, "operand widths are half, once or twice the accumulator's");
  }

  const Known& use(Value v) {
    auto it = known_.find(v);
    if (it == known_.end()) {
      const auto load = loaded_.find(v);
      FUSELINE_ASSERT(load != loaded_.end(), "values are defined before they are used");
      std::visit([this](const auto& p) { load_now(p); }, *load->second);
      it = known_.find(v);
    }
    if (const int life = it->second.life; life >= 0)
      lives_[static_cast<std::size_t>(life)].last = step_;
    return it->second;
  }

  void define(Value v, Form form, int each) {
    // A fragment has two rows and 8 groups of columns in a thread.
    const int life = form == Form::row ? -1 : begin_life((form == Form::tile ? 16 : 8) * each);
    known_[v] = {form, each, life};
  }
  int begin_life(int registers) {
    lives_.push_back({registers, step_, step_});
    return static_cast<int>(lives_.size()) - 1;
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

  void load_now(const LoadTile& p) {
    const int each = each_of(p.from.cols);
    needs_.tile_loads += each == 4 ? 2 : 1;
    define(p.out, Form::tile, each);
  }
  void load_now(const LoadVector& p) {
    if (p.axis == Axis::cols) ++needs_.col_loads;
    define(p.out, p.axis == Axis::cols ? Form::col : Form::row, p.axis == Axis::cols ? 2 : 0);
  }
  void load_now(const LoadTable& p) { define(p.out, Form::tile, 2); }
  template <class Other>
  void load_now(const Other&) {
    FUSELINE_ASSERT(false, "only loads are delayed");
  }

  void visit(const Map& p) {
    Known result{.form = Form::row, .each = 0};
    for (const Value v : p.in) {
      const Known in = use(v);
      result.each = std::max(result.each, in.form == Form::row ? 0 : in.each);
      if (in.form == Form::tile || (in.form == Form::col && result.form == Form::row))
        result.form = in.form;
    }
    define(p.out, result.form, result.each);
  }
  void visit(const PairMap& p) {
    for (const Value v : p.in) use(v);
    const int each = use(p.in.at(0)).each;
    switch (p.fn) {
      case PairFn::rope:
      case PairFn::rope_inverse:
        return define(p.out.at(0), Form::tile, each);
      case PairFn::swiglu:
        return define(p.out.at(0), Form::tile, each / 2);
      case PairFn::swiglu_backward:
        define(p.out.at(0), Form::tile, each);
        if (p.out.size() > 1) define(p.out[1], Form::tile, each / 2);
        return;
    }
  }
  void visit(const TileReduce& p) {
    barriers_.push_back(step_);
    const Known in = use(p.in);
    if (p.second >= 0) use(p.second);
    if (p.axis == Axis::cols)
      needs_.reduces_columns = true;
    else
      needs_.row_partial_cols =
          std::max(needs_.row_partial_cols, partial_tile * 2 / static_cast<std::int64_t>(in.each));
  }
  void visit(const OnlineLogSumExp& p) {
    barriers_.push_back(step_);
    use(p.in);
    needs_.row_partial_cols = std::max(needs_.row_partial_cols, partial_tile);
  }
  void visit(const StoreTile& p) {
    barriers_.push_back(step_);
    use(p.in);
  }
  void visit(const StoreVector& p) { use(p.in); }
  void visit(const Columns& p) { known_[p.out] = use(p.in); }
  template <class Other>
  void visit(const Other&) {}

  const Program& program_;
  EpilogueParts parts_;
  std::int64_t N_ = 0;
  std::map<Value, const Primitive*> loaded_;
  std::map<Value, Known> known_;
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
