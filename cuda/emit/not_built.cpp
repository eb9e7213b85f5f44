#include "cuda/emit/not_built.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "cuda/emit/codes_source.h"
#include "cuda/emit/gathered_groups.h"
#include "cuda/emit/scan_shape.h"
#include "cuda/emit/stream_shape.h"
#include "model/primitives/parts.h"
#include "model/primitives/primitives.h"
#include "model/primitives/values.h"
#include "sim/kernels/scan_gradient_shape.h"

namespace fuseline::cuda {

namespace {

bool apart(const Operand& o) { return o.at.run > 1; }

std::string of(const GemmMainloop& m) {
  if (!m.groups.empty() && m.a_is_km)
    return "a product of groups of rows whose first operand lies along K";
  return "";
}

std::string of(const AttentionMainloop& m) {
  const AttentionShape& s = m.shape;
  if (s.causal && s.prefix > 0) return "attention with a prefix that all queries see";
  constexpr std::int64_t kWidestOfCodes = 256;
  if (s.cache.quantised() && s.head_width > kWidestOfCodes)
    return fmt::format("attention with a cache in {} of heads of {} columns", s.cache.name(),
                       s.head_width);
  if (m.q_value < 0 && apart(m.q)) return "attention of queries whose rows lie apart";
  if (m.gradient && (apart(m.k) || apart(m.v)))
    return "attention's gradient of keys whose rows lie apart";
  return "";
}

std::string of(const StreamMainloop&) { return ""; }
std::string of(const RowMainloop&) { return ""; }
std::string of(const ScanMainloop& m) {
  if (m.gradient) {
    if (!m.rates || m.state || m.state_after)
      return "the gradient of a scan without rates, or from and to states of a cache";
    return scan_gradient_layout(m) ? "" : "the gradient of a scan of heads that no block has whole";
  }
  const std::int64_t N = m.shape.state_width;
  if (N > widest_state)
    return "a scan whose state has " + std::to_string(N) + " columns, more than " +
           std::to_string(widest_state) + ",";
  return "";
}

// Partial sums beside sums over whole rows: threads that hold a row have whole blocks of it, or
// walk down the rows of a block.
bool leaves_blocks(const Program& program) {
  const auto* m = std::get_if<RowMainloop>(&program.mainloop);
  return m != nullptr && m->heads == 1 && m->cols <= widest_row;
}

// What follows a scan takes the columns that a thread block has, which are parts of rows.
bool follows_scan(const Primitive& p) {
  const TileDemands d = p.demands();
  if (d.whole_rows || d.whole_columns || d.other_columns || d.pair_distance > 0 || d.slice)
    return false;
  if (p.is<GroupReduce>()) return false;
  return std::ranges::all_of(p.accesses(), [](const Access& a) {
    return a.reach == Reach::tile || a.reach == Reach::row_numbers ||
           a.reach == Reach::col_numbers || a.reach == Reach::table ||
           a.reach == Reach::sequence_rows;
  });
}

// Rows that lie apart are moved as tiles only; an epilogue stores them, but adds to none and loads
// none.
bool moves_rows_apart(const Access& access, bool gemm, bool attention) {
  if (!apart(access.operand)) return false;
  const bool tile = access.reach == Reach::tile || access.reach == Reach::part_columns ||
                    access.reach == Reach::rows_above || access.reach == Reach::rows_before;
  return !tile || attention || (gemm && (!access.store || access.accumulate));
}

// Sums over the rows of each sequence take a walk of their own.
std::string of_sequences(const Program& program) {
  const bool columns = std::ranges::any_of(program.body, [](const Primitive& p) {
    return p.demands().whole_columns || std::ranges::any_of(p.accesses(), [](const Access& a) {
             return a.reach == Reach::partials && a.along == Axis::cols;
           });
  });
  return columns ? "sums over the rows of each sequence beside sums down all rows" : "";
}

// A choice among the columns of rows that their threads hold.
std::string of_choice(const Program& program) {
  const auto* m = std::get_if<RowMainloop>(&program.mainloop);
  if (m == nullptr || m->heads > 1) return "a choice of experts but for rows of their scores";
  return m->cols > widest_row ? fmt::format("a choice among {} experts", m->cols) : "";
}

// A stream stores sorted places by the keys that have them, and has them nowhere else.
std::string of_sorted(const Program& program, const SortPlaces& sort) {
  const auto stores_them = [&](const Primitive& p) {
    const auto* store = p.as<StoreVector>();
    return store != nullptr && store->in == sort.order && store->axis == Axis::rows;
  };
  const auto others = [&](const Primitive& p) {
    const std::vector<Value> uses = p.uses();
    return std::ranges::find(uses, sort.order) != uses.end() && !stores_them(p);
  };
  const auto* stream = std::get_if<StreamMainloop>(&program.mainloop);
  if (stream == nullptr || std::ranges::any_of(program.body, others))
    return "sorted places that are used where they are made";
  // Every lane that counts has rows of its own.
  return sort.counts() && stream->cols != 1 ? "a sort by counting beside wider rows" : "";
}

// Partial sums of a part of the columns: the tiles' blocks of 128 must be as many as those of the
// part, which has one number for each. They are more where the part begins within a block.
std::string of_row_blocks(const Program& program, std::size_t index) {
  const auto* reduce = program.body[index].as<TileReduce>();
  if (reduce == nullptr || reduce->axis != Axis::rows) return "";
  const EpilogueParts parts = parts_of(program);
  const int home = parts.home[index];
  if (home < 0) return "";
  // In columns of the accumulator.
  const std::int64_t cols = parts.cols(home);
  const std::int64_t width = analyse(program).width(reduce->in);
  const std::int64_t block = partial_tile * cols / width;
  const std::int64_t before = parts.begin(home) % block;
  return ceil_div(before + cols, block) == ceil_div(cols, block)
             ? ""
             : "partial sums of columns that begin within a block";
}

std::string of_body(const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  const bool attention = std::holds_alternative<AttentionMainloop>(program.mainloop);
  const bool stream = std::holds_alternative<StreamMainloop>(program.mainloop);
  const bool scan = std::holds_alternative<ScanMainloop>(program.mainloop);
  const bool rows =
      std::ranges::any_of(program.body, [](const Primitive& p) { return p.demands().whole_rows; });
  const bool columns = std::ranges::any_of(
      program.body, [](const Primitive& p) { return p.demands().whole_columns; });
  if (const auto* m = std::get_if<AttentionMainloop>(&program.mainloop);
      m != nullptr && m->shape.cache.quantised() && !program.prologue.empty())
    return "attention that writes a cache in " + m->shape.cache.name() + " ahead of it";
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    const Primitive& p = program.body[i];
    if (scan && !follows_scan(p)) return std::string(p.name()) + " behind a scan";
    const auto* mask = p.as<Mask>();
    if (mask != nullptr && mask->shape.causal && mask->shape.prefix > 0)
      return "a mask with a prefix that all queries see";
    if (p.is<GroupReduce>()) {
      if (gemm != nullptr)
        if (std::string what = groups_not_built(program, i); !what.empty()) return what;
      const auto* row = std::get_if<RowMainloop>(&program.mainloop);
      const bool held =
          row != nullptr && rows_hold_groups(row->heads, row->cols, p.as<GroupReduce>()->group);
      if (!stream && gemm == nullptr && !held) return "sums over heads beside sums over rows";
      if (columns && lanes_of_group(p.as<GroupReduce>()->group) == 0)
        return "sums over heads on the way down columns, where no lanes hold a head";
    }
    if (p.is<SumSequences>())
      if (std::string what = of_sequences(program); !what.empty()) return what;
    if (const auto* m = std::get_if<RowMainloop>(&program.mainloop); m != nullptr && m->heads == 1)
      if (const auto* reduce = p.as<RowReduce>();
          reduce != nullptr && analyse(program).width(reduce->in) < m->cols)
        return "a sum over the columns of a value that is narrower than its rows";
    if (p.is<ChooseExperts>() || p.is<ChooseExpertsGradient>())
      if (std::string what = of_choice(program); !what.empty()) return what;
    if (gemm != nullptr)
      if (std::string what = of_row_blocks(program, i); !what.empty()) return what;
    if (const auto* sort = p.as<SortPlaces>())
      if (std::string what = of_sorted(program, *sort); !what.empty()) return what;
    for (const Access& access : p.accesses()) {
      if (gemm != nullptr && !gemm->groups.empty() && access.reach == Reach::partials &&
          access.along == Axis::cols)
        return "a product of groups of rows that sums columns";
      if (rows && access.reach == Reach::partials && !leaves_blocks(program))
        return "partial sums beside sums over whole rows";
      if (access.reach == Reach::sequence_rows && attention)
        return std::string(p.name()) + " of one row for each sequence";
      if (gemm != nullptr && gemm->batch > 1 && access.period > 0)
        return "a batch of products that loads a table of a part of each head";
      if (moves_rows_apart(access, gemm != nullptr, attention))
        return std::string(p.name()) + " of rows that lie apart";
    }
  }
  return "";
}

}  // namespace

std::string not_built(const Program& program) {
  std::string missing = codes_not_built(program);
  if (missing.empty()) missing = std::visit([](const auto& m) { return of(m); }, program.mainloop);
  return missing.empty() ? of_body(program) : missing;
}

}  // namespace fuseline::cuda
