#include "sim/kernels/gemm_parts.h"

#include <algorithm>
#include <memory>

namespace fuseline {
namespace {

// About what a wave moves: the rows and columns that its units want of both operands, and what they
// make.
double about_moved(const GemmProblem& problem, const GemmSchedule& schedule,
                   const UnitRange& range) {
  std::int64_t rows = 0, cols = 0, depth = 0, made = 0;
  std::int64_t row = problem.m, row_end = 0, col = problem.n, col_end = 0;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const GemmUnit& u = schedule.units[static_cast<std::size_t>(i)];
    rows += u.m_end - u.m_begin;
    cols += u.n_end - u.n_begin;
    made += (u.m_end - u.m_begin) * (u.n_end - u.n_begin);
    row = std::min(row, u.m_begin), row_end = std::max(row_end, u.m_end);
    col = std::min(col, u.n_begin), col_end = std::max(col_end, u.n_end);
    depth = std::max(depth, u.k_end - u.k_begin);
  }
  if (problem.batch == 1 && problem.groups.empty()) {
    rows = std::min(rows, row_end - row);
    cols = std::min(cols, col_end - col);
  }
  return static_cast<double>(rows * depth) * problem.a.matrix.element.as_double() +
         static_cast<double>(cols * depth) * problem.b.matrix.element.as_double() +
         static_cast<double>(made) * 2;
}

// Where parts end, in waves, but for the last.
std::vector<std::int64_t> cuts_of(const GemmWalk& gemm, const GemmSchedule& schedule,
                                  double capacity) {
  // In fillings of L2. The first wave of all reads most of what later ones find, so that the older
  // contents are gone some time after one filling; a second cut is for what stays longer. Where
  // little is left behind a cut, to look for it takes longer than to walk it.
  constexpr double kFillings[] = {1.5, 4};
  constexpr double kWorthwhile = 0.5;
  std::vector<double> moved;
  double all = 0;
  for (const UnitRange& range : schedule.waves())
    moved.push_back(all += about_moved(gemm.problem, schedule, range));
  std::vector<std::int64_t> cuts;
  for (const double fillings : kFillings) {
    const auto cut = std::ranges::lower_bound(moved, fillings * capacity);
    if (cut == moved.end() || all - *cut < kWorthwhile * capacity) break;
    const std::int64_t wave = cut - moved.begin() + 1;
    if (wave < std::ssize(moved) && (cuts.empty() || wave > cuts.back())) cuts.push_back(wave);
  }
  return cuts;
}

}  // namespace

std::vector<Walk> parts_of(const GemmWalk& gemm, Bytes l2_capacity) {
  const auto schedule = std::make_shared<const GemmSchedule>(schedule_of(gemm));
  std::vector<std::int64_t> ends;
  if (is_walked_in_full(gemm, *schedule)) ends = cuts_of(gemm, *schedule, l2_capacity.as_double());
  if (ends.empty()) return {[&gemm](L2Cache& cache) { return walk(gemm, cache); }};
  ends.push_back(std::ssize(schedule->waves()));
  std::vector<Walk> parts;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    parts.emplace_back([&gemm, schedule, begin, end](L2Cache& cache) {
      return walk(gemm, *schedule, {begin, end}, cache);
    });
    begin = end;
  }
  return parts;
}

}  // namespace fuseline
