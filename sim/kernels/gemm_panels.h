// The strips of operands that thread blocks of a GEMM read at the same time.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_schedule.h"

namespace fuseline {

// A strip of operand rows over the k range of some unit of the wave: one or more of the blocks of
// 64 rows that operands are read in.
struct Panel {
  bool of_b;
  std::int64_t batch, row_begin, row_end, k_begin, k_end;
  friend auto operator<=>(const Panel&, const Panel&) = default;
  [[nodiscard]] std::int64_t blocks() const { return ceil_div(row_end - row_begin, kChunkEdge); }
};

// From the operand rows of units to the distinct strips that a wave reads, in the order of their
// rows. Blocks belong to the matrix, not to the unit, so that neighbours whose edges share a block
// share its chunk.
class WavePanels {
 public:
  explicit WavePanels(const GemmProblem& problem) : problem_(&problem) {}

  void clear() {
    wanted_.clear();
    found_ = false;
  }
  void add(const GemmUnit& unit);
  // Units of a wave share most of their panels, so few are left once equal ones are gone.
  const std::vector<Panel>& distinct();

 private:
  void want(const Panel& panel);
  void join_neighbours();

  const GemmProblem* problem_;
  std::vector<Panel> wanted_;  // by units
  std::vector<Panel> blocks_;
  bool found_ = false;  // blocks_ holds the distinct ones
};

// Their bytes, without scales.
Bytes bytes_of(const GemmProblem& problem, const std::vector<Panel>& panels);

}  // namespace fuseline
