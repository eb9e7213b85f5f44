#include "sim/programs/some_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <variant>

#include "base/error.h"
#include "model/primitives/basics.h"
#include "model/primitives/mask.h"
#include "model/programs/rewritten.h"

namespace fuseline {

namespace {

bool mainloop_by_rows(const Program& p, bool alone) {
  if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop))
    return gemm->batch == 1 && (alone || !gemm->a_is_km) && gemm->groups.empty() &&
           gemm->depths.empty() && !(gemm->a_is_km && gemm->a_scale);
  if (const auto* row = std::get_if<RowMainloop>(&p.mainloop)) return row->heads == 1;
  return std::holds_alternative<StreamMainloop>(p.mainloop);
}

// What a mask hides depends on the row's place, and a reduction of whole columns needs all rows.
bool needs_other_rows(const Primitive& p) {
  return p.as<Mask>() != nullptr || p.demands().whole_columns;
}

class Cutting {
 public:
  // `alone`: no program makes what another one reads.
  Cutting(const Plan& plan, std::int64_t all, std::int64_t count, bool alone)
      : all_(all), count_(count), alone_(alone), out_{plan, {}} {
    cut_.resize(plan.graph.tensors().size());
  }

  std::optional<PlanOfRows> run() {
    for (Kernel& k : out_.plan.kernels)
      for (Program& p : k.phases)
        if (!mainloop_by_rows(p, alone_) || !p.prologue.empty() || !program(p)) return std::nullopt;
    Graph graph;
    for (std::size_t i = 0; i < cut_.size(); ++i) {
      Tensor t = out_.plan.graph.tensors()[i];
      const Cut cut = cut_[i].value_or(Cut::whole);
      const std::int64_t along = cut == Cut::columns ? t.cols : t.rows;
      if ((cut == Cut::rows || cut == Cut::columns) && along != all_) return std::nullopt;
      if (cut == Cut::rows) t.rows = count_;
      if (cut == Cut::columns) t.cols = count_;
      if (cut == Cut::blocks) t.cols = t.cols / blocks(all_) * blocks(count_);
      if (cut != Cut::whole) t.outer.clear();
      out_.cut.push_back(cut);
      graph.add_tensor(std::move(t));
    }
    out_.plan.graph = graph;
    out_.plan.block = std::move(graph);
    for (Kernel& k : out_.plan.kernels) k.ops.clear();
    return std::move(out_);
  }

 private:
  static std::int64_t blocks(std::int64_t rows) { return ceil_div(rows, partial_tile); }

  // All uses of a tensor follow the rows in one way.
  bool follows(const Operand& o, Cut cut) {
    std::optional<Cut>& known = cut_[static_cast<std::size_t>(o.tensor.index)];
    if (known && *known != cut) return false;
    known = cut;
    return true;
  }
  bool cut(Operand& o, Cut how) {
    if (how == Cut::whole) return follows(o, how);
    // Numbers of rows may lie in a row of a tensor, one behind the other.
    if (how == Cut::rows && alone_ && o.rows == 1 && o.cols == all_ && o.col_begin == 0) {
      o.cols = count_;
      return follows(o, Cut::columns);
    }
    if (o.at != RowRuns{} || (how == Cut::rows && o.rows != all_) ||
        (how != Cut::rows && o.col_begin != 0))
      return false;
    if (how == Cut::rows) o.rows = count_;
    if (how == Cut::columns) o.cols = count_;
    if (how == Cut::blocks) o.cols = o.cols / blocks(all_) * blocks(count_);
    return follows(o, how);
  }

  bool program(Program& p) {
    if (auto* gemm = std::get_if<GemmMainloop>(&p.mainloop)) {
      gemm->M = count_;
      bool well = cut(gemm->a, gemm->a_is_km ? Cut::columns : Cut::rows) &&
                  follows(gemm->b, Cut::whole) &&
                  (!gemm->a_scale || cut(*gemm->a_scale, Cut::rows));
      for (const Operand& o : gemm->beside_b) well = follows(o, Cut::whole) && well;
      if (!well) return false;
    }
    if (auto* stream = std::get_if<StreamMainloop>(&p.mainloop)) stream->rows = count_;
    if (auto* row = std::get_if<RowMainloop>(&p.mainloop)) row->rows = count_;
    for (Primitive& primitive : p.body) {
      if (needs_other_rows(primitive)) return false;
      const std::vector<Access> accesses = primitive.accesses();
      bool by_rows =
          std::ranges::all_of(accesses, [&](const Access& a) { return cut_of(a).has_value(); });
      primitive = rewritten(primitive, [&](Operand& o) {
        const auto access = std::ranges::find(accesses, o, &Access::operand);
        by_rows = by_rows && access != accesses.end() && cut(o, *cut_of(*access));
      });
      if (!by_rows) return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<Cut> cut_of(const Access& a) const {
    switch (a.reach) {
      case Reach::tile:
      case Reach::part_columns:
      case Reach::row_numbers:
        return Cut::rows;
      case Reach::col_numbers:
        return Cut::whole;
      case Reach::partials:
        if (a.along == Axis::rows) return Cut::rows;
        return alone_ ? std::optional(Cut::blocks) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::int64_t all_, count_;
  bool alone_;
  PlanOfRows out_;
  std::vector<std::optional<Cut>> cut_;  // by tensor; nothing: no use of it was met
};

}  // namespace

std::int64_t rows_of(const Program& p) {
  if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop)) return gemm->M;
  if (const auto* stream = std::get_if<StreamMainloop>(&p.mainloop)) return stream->rows;
  if (const auto* row = std::get_if<RowMainloop>(&p.mainloop)) return row->rows;
  return 0;
}

std::int64_t rows_of(const Plan& plan) {
  std::int64_t rows = 0;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      const std::int64_t here = rows_of(p);
      if (here == 0 || (rows != 0 && rows != here)) return 0;
      rows = here;
    }
  return rows;
}

bool sums_down_columns(const Program& program) {
  return std::ranges::any_of(program.body, [](const Primitive& p) {
    return std::ranges::any_of(p.accesses(), [](const Access& a) {
      return a.reach == Reach::partials && a.along == Axis::cols;
    });
  });
}

std::optional<PlanOfRows> plan_of_rows(const Plan& plan, std::int64_t count) {
  const std::int64_t all = rows_of(plan);
  if (all == 0 || count > all) return std::nullopt;
  return Cutting(plan, all, count, false).run();
}

std::optional<PlanOfRows> program_of_rows(const Plan& plan, const Program& program,
                                          std::int64_t count) {
  const std::int64_t all = rows_of(program);
  if (all == 0 || count > all) return std::nullopt;
  Plan alone = plan;
  alone.kernels.clear();
  Kernel kernel{.name = program.name, .kind = KernelKind::pointwise, .ops = {}, .phases = {}};
  kernel.phases.push_back(program);
  alone.kernels.push_back(std::move(kernel));
  return Cutting(alone, all, count, true).run();
}

executor::Storage take_part(const executor::Storage& from, Cut cut,
                            std::span<const std::int64_t> rows, std::int64_t all_rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto copy = [&](executor::Storage& to, std::int64_t row, std::int64_t col,
                        std::int64_t from_row, std::int64_t from_col, std::int64_t cols) {
    std::memcpy(to.at(row, col), from.at(from_row, from_col),
                static_cast<std::size_t>(cols * size_of(from.type())));
  };
  if (cut == Cut::rows) {
    executor::Storage to(from.type(), count, from.cols());
    for (std::int64_t r = 0; r < count; ++r)
      copy(to, r, 0, rows[static_cast<std::size_t>(r)], 0, from.cols());
    return to;
  }
  // Columns of their own, or the first row of each block stands for the block's columns.
  const std::int64_t each =
      cut == Cut::columns ? 1 : from.cols() / ceil_div(all_rows, partial_tile);
  std::vector<std::int64_t> columns;
  for (const std::int64_t row : rows)
    if (cut == Cut::columns)
      columns.push_back(row);
    else if (row % partial_tile == 0)
      columns.push_back(row / partial_tile * each);
  executor::Storage to(from.type(), from.rows(), static_cast<std::int64_t>(columns.size()) * each);
  for (std::int64_t r = 0; r < from.rows(); ++r)
    for (std::size_t i = 0; i < columns.size(); ++i)
      copy(to, r, static_cast<std::int64_t>(i) * each, r, columns[i], each);
  return to;
}

std::vector<std::int64_t> sample_of_blocks(std::int64_t all, std::int64_t count,
                                           std::uint64_t seed) {
  const std::int64_t blocks = ceil_div(all, partial_tile);
  std::vector<std::int64_t> rows;
  // The last block is of the sample, and with more than one the first.
  std::vector<std::int64_t> taken = count > 1
                                        ? sample_of_rows(blocks, std::min(count, blocks), seed)
                                        : std::vector<std::int64_t>{blocks - 1};
  for (const std::int64_t block : taken)
    for (std::int64_t r = block * partial_tile; r < std::min(all, (block + 1) * partial_tile); ++r)
      rows.push_back(r);
  return rows;
}

std::vector<std::int64_t> sample_of_rows(std::int64_t all, std::int64_t count, std::uint64_t seed) {
  FUSELINE_ASSERT(count >= 1 && count <= all, "there are so many rows");
  std::vector<std::int64_t> middle(static_cast<std::size_t>(std::max<std::int64_t>(0, all - 2)));
  std::iota(middle.begin(), middle.end(), 1);
  std::vector<std::int64_t> rows = {0};
  if (count > 1) rows.push_back(all - 1);
  std::mt19937_64 random(seed);
  std::ranges::sample(middle, std::back_inserter(rows), std::max<std::int64_t>(0, count - 2),
                      random);
  std::ranges::sort(rows);
  return rows;
}

}  // namespace fuseline
