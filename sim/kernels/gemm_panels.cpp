#include "sim/kernels/gemm_panels.h"

#include <algorithm>

namespace fuseline {

namespace {

void sort_and_make_distinct(std::vector<Panel>& panels) {
  if (!std::is_sorted(panels.begin(), panels.end())) std::sort(panels.begin(), panels.end());
  panels.erase(std::unique(panels.begin(), panels.end()), panels.end());
}

// Whether blocks of 64 rows of this operand, and steps of 64 along k, begin where the cache's
// chunks do: then blocks side by side are read in the same order one by one and together.
bool on_chunk_edges(const GemmOperand& operand, const Panel& panel) {
  const MatrixOrigin origin = operand.origin(panel.batch);
  const CachedMatrix& m = operand.matrix;
  return m.at.run == 0 && (m.at.begin + origin.row) % kChunkEdge == 0 &&
         origin.col % kChunkEdge == 0 && panel.k_begin % kChunkEdge == 0;
}

}  // namespace

void WavePanels::add(const GemmUnit& unit) {
  want({false, unit.batch, unit.m_begin, unit.m_end, unit.k_begin, unit.k_end});
  want({true, unit.batch, unit.n_begin, unit.n_end, unit.k_begin, unit.k_end});
  found_ = false;
}

// Units that follow each other want the same few panels again: those need no sorting.
void WavePanels::want(const Panel& panel) {
  constexpr std::ptrdiff_t kLatest = 24;
  const auto latest = wanted_.end() - std::min(kLatest, std::ssize(wanted_));
  const bool again = std::any_of(latest, wanted_.end(), [&](const Panel& p) {
    return p.row_begin == panel.row_begin && p == panel;
  });
  if (!again) wanted_.push_back(panel);
}

const std::vector<Panel>& WavePanels::distinct() {
  if (found_) return blocks_;
  found_ = true;
  sort_and_make_distinct(wanted_);
  blocks_.clear();
  for (const Panel& p : wanted_) {
    const std::int64_t limit = p.of_b ? problem_->n : problem_->m;
    for (std::int64_t row = p.row_begin / kChunkEdge * kChunkEdge; row < p.row_end;
         row += kChunkEdge) {
      blocks_.push_back(
          {p.of_b, p.batch, row, std::min(limit, row + kChunkEdge), p.k_begin, p.k_end});
    }
  }
  sort_and_make_distinct(blocks_);
  join_neighbours();
  return blocks_;
}

void WavePanels::join_neighbours() {
  std::size_t last = 0;
  for (std::size_t i = 1; i < blocks_.size(); ++i) {
    Panel& before = blocks_[last];
    const Panel& panel = blocks_[i];
    const bool next = before.of_b == panel.of_b && before.batch == panel.batch &&
                      before.row_end == panel.row_begin && before.k_begin == panel.k_begin &&
                      before.k_end == panel.k_end;
    if (next && on_chunk_edges(panel.of_b ? problem_->b : problem_->a, panel)) {
      before.row_end = panel.row_end;
    } else {
      blocks_[++last] = panel;
    }
  }
  if (!blocks_.empty()) blocks_.resize(last + 1);
}

Bytes bytes_of(const GemmProblem& problem, const std::vector<Panel>& panels) {
  Bytes sum;
  for (const Panel& p : panels)
    sum += Bytes((p.row_end - p.row_begin) * (p.k_end - p.k_begin) *
                 (p.of_b ? problem.b : problem.a).matrix.element);
  return sum;
}

}  // namespace fuseline
