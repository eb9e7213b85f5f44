#include "sim/programs/some_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <variant>

#include "base/error.h"
#include "model/programs/rewritten.h"

namespace fuseline {

namespace {

std::int64_t rows_of_program(const Program& p) {
  if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop)) return gemm->M;
  if (const auto* stream = std::get_if<StreamMainloop>(&p.mainloop)) return stream->rows;
  if (const auto* row = std::get_if<RowMainloop>(&p.mainloop)) return row->rows;
  return 0;
}

bool mainloop_by_rows(const Program& p) {
  if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop))
    return gemm->batch == 1 && !gemm->a_is_km && gemm->groups.empty() && gemm->depths.empty();
  if (const auto* row = std::get_if<RowMainloop>(&p.mainloop)) return row->heads == 1;
  return std::holds_alternative<StreamMainloop>(p.mainloop);
}

class Cutting {
 public:
  Cutting(const Plan& plan, std::int64_t all, std::int64_t count)
      : all_(all), count_(count), out_{plan, std::vector<bool>(plan.graph.tensors().size())} {
    whole_.resize(out_.cut.size());
  }

  std::optional<PlanOfRows> run() {
    for (Kernel& k : out_.plan.kernels)
      for (Program& p : k.phases)
        if (!mainloop_by_rows(p) || !p.prologue.empty() || !program(p)) return std::nullopt;
    Graph graph;
    for (std::size_t i = 0; i < out_.cut.size(); ++i) {
      if (out_.cut[i] && whole_[i]) return std::nullopt;
      Tensor t = out_.plan.graph.tensors()[i];
      if (out_.cut[i]) {
        if (t.rows != all_) return std::nullopt;
        t.rows = count_;
        t.outer.clear();
      }
      graph.add_tensor(std::move(t));
    }
    out_.plan.graph = graph;
    out_.plan.block = std::move(graph);
    for (Kernel& k : out_.plan.kernels) k.ops.clear();
    return std::move(out_);
  }

 private:
  bool cut(Operand& o) {
    if (o.rows != all_ || o.at != RowRuns{}) return false;
    out_.cut[static_cast<std::size_t>(o.tensor.index)] = true;
    o.rows = count_;
    return true;
  }
  void whole(const Operand& o) { whole_[static_cast<std::size_t>(o.tensor.index)] = true; }

  bool program(Program& p) {
    if (auto* gemm = std::get_if<GemmMainloop>(&p.mainloop)) {
      gemm->M = count_;
      whole(gemm->b);
      for (const Operand& o : gemm->beside_b) whole(o);
      if (!cut(gemm->a) || (gemm->a_scale && !cut(*gemm->a_scale))) return false;
    }
    if (auto* stream = std::get_if<StreamMainloop>(&p.mainloop)) stream->rows = count_;
    if (auto* row = std::get_if<RowMainloop>(&p.mainloop)) row->rows = count_;
    for (Primitive& primitive : p.body) {
      bool by_rows = true;
      for (const Access& a : primitive.accesses()) {
        const bool moves_rows = a.reach == Reach::tile || a.reach == Reach::part_columns ||
                                a.reach == Reach::row_numbers ||
                                (a.reach == Reach::partials && a.along == Axis::rows);
        if (a.reach == Reach::col_numbers)
          whole(a.operand);
        else if (!moves_rows)
          by_rows = false;
      }
      if (!by_rows) return false;
      primitive = rewritten(primitive, [&](Operand& o) {
        if (!whole_[static_cast<std::size_t>(o.tensor.index)]) by_rows = cut(o) && by_rows;
      });
      if (!by_rows) return false;
    }
    return true;
  }

  std::int64_t all_, count_;
  PlanOfRows out_;
  std::vector<bool> whole_;
};

}  // namespace

std::int64_t rows_of(const Plan& plan) {
  std::int64_t rows = 0;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      const std::int64_t here = rows_of_program(p);
      if (here == 0 || (rows != 0 && rows != here)) return 0;
      rows = here;
    }
  return rows;
}

std::optional<PlanOfRows> plan_of_rows(const Plan& plan, std::int64_t count) {
  const std::int64_t all = rows_of(plan);
  if (all == 0 || count > all) return std::nullopt;
  return Cutting(plan, all, count).run();
}

executor::Storage take_rows(const executor::Storage& from, std::span<const std::int64_t> rows) {
  executor::Storage to(from.type(), static_cast<std::int64_t>(rows.size()), from.cols());
  const std::int64_t bytes = from.cols() * size_of(from.type());
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::memcpy(to.at(static_cast<std::int64_t>(r), 0), from.at(rows[r], 0),
                static_cast<std::size_t>(bytes));
  return to;
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
