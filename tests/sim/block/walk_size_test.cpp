#include "sim/block/walk_size.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/block/estimate.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

WalkSize size_of_block(const std::string& policy, const Workload& workload) {
  return walk_size(make_plan(policy, llama_7b(), workload));
}

TEST(WalkSize, CountsTilesAndChunks) {
  // One kernel for each of the four GEMMs: (M/128 + 1)(N/128 + 1) tiles.
  const double rows = 2048.0 / 128 + 1;
  const double columns = 3 * 32 + 1 + 32 + 1 + 2 * 86 + 1 + 32 + 1;
  EXPECT_DOUBLE_EQ(size_of_block("eager", forward(1, 2048)).tiles, rows * columns);
  EXPECT_GT(size_of_block("eager", forward(1, 2048)).chunks, 0);
}

// The scores of 32 heads: the only tensor that grows with the square of the tokens.
TEST(WalkSize, OfUnfusedGrowsWithTheSquareOfTheTokens) {
  const WalkSize once = size_of_block("unfused", forward(1, 65536));
  const WalkSize twice = size_of_block("unfused", forward(1, 131072));
  EXPECT_GT(twice.tiles, 3.8 * once.tiles);
  EXPECT_GT(twice.chunks, 3.8 * once.chunks);
  EXPECT_LT(size_of_block("eager", forward(1, 131072)).tiles,
            2.1 * size_of_block("eager", forward(1, 65536)).tiles);
}

TEST(WalkSize, WhatTakesMinutesOrGigabytesDoesNotFit) {
  EXPECT_TRUE(size_of_block("unfused", forward(1, 131072)).fits());
  EXPECT_FALSE(size_of_block("unfused", forward(1, 524288)).fits());
  EXPECT_TRUE(size_of_block("coda", forward(1, 524288)).fits());
}

TEST(WalkSize, TheHierarchyRefusesWhatDoesNotFitAndTheRooflineTakesIt) {
  const Plan plan = make_plan("unfused", llama_7b(), forward(1, 524288));
  try {
    simulate(plan, load_gpu("h200"), Fidelity::hierarchy);
    FAIL() << "simulated";
  } catch (const InputError& error) {
    EXPECT_NE(error.problem().message.find("under policy unfused"), std::string::npos);
    EXPECT_NE(error.problem().allowed.find("roofline"), std::string::npos);
  }
  EXPECT_GT(simulate(plan, load_gpu("h200"), Fidelity::roofline).time, Seconds(0));
}

}  // namespace
}  // namespace fuseline
