// The strips that a wave reads, against every block of 64 rows that its units ask for.
#include "sim/kernels/gemm_panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace fuseline {
namespace {

// One strip a block of 64 rows.
std::set<Panel> blocks_of(const std::vector<Panel>& panels) {
  std::set<Panel> blocks;
  for (const Panel& panel : panels) {
    for (std::int64_t row = panel.row_begin; row < panel.row_end; row += kChunkEdge) {
      Panel block = panel;
      block.row_begin = row;
      block.row_end = std::min(panel.row_end, row + kChunkEdge);
      EXPECT_TRUE(blocks.insert(block).second) << "row " << row << " twice";
    }
  }
  return blocks;
}

void ask(std::set<Panel>& blocks, Panel panel, std::int64_t limit) {
  const std::int64_t end = panel.row_end;
  for (std::int64_t row = panel.row_begin / kChunkEdge * kChunkEdge; row < end; row += kChunkEdge) {
    panel.row_begin = row;
    panel.row_end = std::min(limit, row + kChunkEdge);
    blocks.insert(panel);
  }
}

// Units in any order, many of them again after a few others or after many.
TEST(WavePanels, AreTheBlocksThatTheirUnitsAskFor) {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int turn = 0; turn < 200; ++turn) {
    SCOPED_TRACE(turn);
    GemmProblem problem;
    problem.m = 1 + below(3000);
    problem.n = 1 + below(3000);
    problem.k = 512;
    problem.a.matrix = {0, problem.m, problem.k, 2};
    problem.b.matrix = {1, problem.n, problem.k, 2};
    const std::int64_t tile = 32 * (1 + below(8));
    WavePanels panels(problem);
    for (int wave = 0; wave < 3; ++wave) {
      panels.clear();
      std::set<Panel> expected;
      for (std::int64_t left = 1 + below(150); left > 0; --left) {
        GemmUnit unit;
        unit.m_begin = below(ceil_div(problem.m, tile)) * tile;
        unit.m_end = std::min(problem.m, unit.m_begin + tile);
        unit.n_begin = below(ceil_div(problem.n, tile)) * tile;
        unit.n_end = std::min(problem.n, unit.n_begin + tile);
        unit.k_begin = 256 * below(2);
        unit.k_end = unit.k_begin + 256;
        panels.add(unit);
        ask(expected, {false, 0, unit.m_begin, unit.m_end, unit.k_begin, unit.k_end}, problem.m);
        ask(expected, {true, 0, unit.n_begin, unit.n_end, unit.k_begin, unit.k_end}, problem.n);
        // Asked in between, it still knows what comes later.
        if (below(20) == 0) {
          EXPECT_EQ(blocks_of(panels.distinct()), expected);
        }
      }
      EXPECT_EQ(blocks_of(panels.distinct()), expected);
      EXPECT_EQ(blocks_of(panels.distinct()), expected);
    }
  }
}

}  // namespace
}  // namespace fuseline
