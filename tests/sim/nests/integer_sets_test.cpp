// What isl says of loop nests, beside what is known of them.
#include "sim/nests/integer_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/memory/tile_shape.h"
#include "sim/nests/program_nest.h"
#include "tests/sim/sim_support.h"
#include "tests/support/rounds.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

TileOrder tiles(std::vector<TileOrder::Cut> cuts) { return {std::move(cuts)}; }

LoopNest product_and_store() {
  return {"product",
          {{"m", 100}, {"n", 70}, {"k", 50}},
          {{"product", {"m", "n", "k"}, {{"a", "m, k"}, {"b", "n, k"}, {"c", "m, n", true}}, true},
           {"store", {"m", "n"}, {{"c", "m, n"}, {"y", "m, n", true}}}}};
}

// y[m] = the sum of a row; then every element is divided by it.
LoopNest row_sums() {
  return {"rows",
          {{"m", 10}, {"n", 20}},
          {{"sum", {"m", "n"}, {{"x", "m, n"}, {"s", "m", true}}, true},
           {"divide", {"m", "n"}, {{"x", "m, n"}, {"s", "m"}, {"y", "m, n", true}}}}};
}

TEST(NestSets, AnyOrderOfTheTilesOfAProductIsLegalWithTheStoreBehindTheLastOne) {
  const NestSets sets(product_and_store());
  EXPECT_FALSE(sets.broken_by(tiles({{"m", 16}, {"n", 32}, {"k", 8}})));
  EXPECT_FALSE(sets.broken_by(tiles({{"k", 8}, {"n", 32}, {"m", 16}})));
  EXPECT_FALSE(sets.broken_by(tiles({})));
}

TEST(NestSets, TilesOfAProductAreIndependentUnlessKIsCut) {
  const NestSets sets(product_and_store());
  EXPECT_FALSE(sets.crosses(tiles({{"m", 16}, {"n", 32}})));
  const auto broken = sets.crosses(tiles({{"m", 16}, {"n", 32}, {"k", 8}}));
  ASSERT_TRUE(broken);
  EXPECT_THAT(broken->iterations, HasSubstr("product["));
}

TEST(NestSets, ARowSumIsLegalInTilesOfWholeRowsAlone) {
  const NestSets sets(row_sums());
  EXPECT_FALSE(sets.broken_by(tiles({{"m", 4}})));
  EXPECT_FALSE(sets.crosses(tiles({{"m", 4}})));
  EXPECT_FALSE(sets.crosses(tiles({{"m", 4}, {"n", 0}})));
  // Tile by tile the first element would be divided by half of the sum.
  const auto order = sets.broken_by(tiles({{"m", 4}, {"n", 5}}));
  ASSERT_TRUE(order);
  EXPECT_THAT(order->iterations, HasSubstr("sum["));
  EXPECT_THAT(order->iterations, HasSubstr("divide["));
  EXPECT_TRUE(sets.crosses(tiles({{"n", 5}})));
}

TEST(NestSets, ARecurrenceKeepsItsDirection) {
  // A stencil: tiles of both loops would need each other's values.
  const LoopNest stencil{
      "stencil",
      {{"t", 10}, {"x", 20}},
      {{"step", {"t", "x"}, {{"u", "t, x - 1"}, {"u", "t, x + 1"}, {"u", "t + 1, x", true}}}}};
  const NestSets sets(stencil);
  EXPECT_FALSE(sets.broken_by(tiles({{"t", 4}})));
  EXPECT_TRUE(sets.broken_by(tiles({{"x", 4}})));
  EXPECT_TRUE(sets.broken_by(tiles({{"t", 4}, {"x", 4}})));
  EXPECT_FALSE(sets.broken_by(tiles({{"t", 1}, {"x", 4}})));
}

TEST(NestSets, TermsOfOneSumDoNotDependOnEachOther) {
  LoopNest nest = product_and_store();
  EXPECT_THAT(NestSets(nest).dependences(), Not(HasSubstr("-> product[")));
  nest.statements.front().sums = false;
  EXPECT_THAT(NestSets(nest).dependences(), HasSubstr("-> product["));
}

TEST(NestSets, FootprintsOfRectanglesAreProductsOfTheirSides) {
  const NestSets sets(product_and_store());
  const TileOrder tile = tiles({{"m", 16}, {"n", 32}, {"k", 8}});
  for (const char* array : {"a", "b", "c"}) EXPECT_TRUE(sets.footprint_is_rectangle(array));
  EXPECT_EQ(sets.footprint("a", tile), 16 * 8);
  EXPECT_EQ(sets.footprint("b", tile), 32 * 8);
  EXPECT_EQ(sets.footprint("c", tile), 16 * 32);
  EXPECT_EQ(sets.footprint("a", tiles({})), 100 * 50);
}

TEST(NestSets, AWindowIsARectangleAndADiagonalIsNone) {
  const LoopNest window{
      "window",
      {{"t", 30}, {"r", 4}, {"c", 5}},
      {{"conv", {"t", "r", "c"}, {{"x", "t + r, c"}, {"y", "t, c", true}}, true}}};
  const NestSets sets(window);
  EXPECT_TRUE(sets.footprint_is_rectangle("x"));
  EXPECT_EQ(sets.footprint("x", tiles({{"t", 10}})), (10 + 3) * 5);
  const LoopNest diagonal{"diagonal",
                          {{"i", 8}, {"j", 8}},
                          {{"touch", {"i", "j"}, {{"x", "i + j, i"}, {"y", "i, j", true}}}}};
  EXPECT_FALSE(NestSets(diagonal).footprint_is_rectangle("x"));
}

// The tiles in which our kernels run are independent, by the sets alone: no list of cases says so.
TEST(ProgramNest, TilesOfEveryShippedProgramAreIndependent) {
  std::size_t checked = 0;
  const std::vector<std::string> models = {"llama3-8b", "mixtral-8x7b", "gpt2-xl", "gemma2-9b",
                                           "jamba"};
  for (int i = 0; i < test::rounds(static_cast<int>(models.size())); ++i) {
    const std::string& name = models[static_cast<std::size_t>(i)];
    for (Workload work : {forward(1, 256), decode(8, 1, 512), forward(1, 200)}) {
      if (work.seq == 200) work.phase = Phase::train;
      for (const char* policy : {"coda", "per-operator"}) {
        const Plan plan = make_plan(policy, load_model(name), work);
        for (const Kernel& kernel : plan.kernels) {
          const Program& program = kernel.phases.front();
          const bool product = std::holds_alternative<GemmMainloop>(program.mainloop);
          if (!product && !std::holds_alternative<RowMainloop>(program.mainloop)) continue;
          const NestSets sets(nest_of(program));
          const TileShape tile = default_tile(program);
          // A row is whole however long rows are; a thread block has the rows of one partial.
          const auto broken = sets.crosses(product ? tiles({{"m", tile.m}, {"n", tile.n}})
                                                   : tiles({{"m", partial_tile}, {"n", 0}}));
          EXPECT_FALSE(broken) << name << " " << policy << " " << kernel.name << ": "
                               << (broken ? broken->iterations : "");
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 40U);
}

TEST(ProgramNest, ANormCannotBeCutWithinARow) {
  const Plan plan = make_plan("per-operator", small_llama(), forward(1, 64));
  std::size_t norms = 0;
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.kind != KernelKind::norm) continue;
    ++norms;
    const NestSets sets(nest_of(kernel.phases.front()));
    EXPECT_FALSE(sets.crosses(tiles({{"m", 1}}))) << kernel.name;
    EXPECT_TRUE(sets.crosses(tiles({{"m", 1}, {"n", 32}}))) << kernel.name;
  }
  EXPECT_GT(norms, 0U);
}

TEST(ProgramNest, AScanKeepsTheOrderOfItsTokensAndAttentionSplitsItsKeysOnlyWithASum) {
  const Plan scan = make_plan("coda", load_model("mamba2-2.7b"), forward(1, 256));
  std::size_t scans = 0;
  for (const Kernel& kernel : scan.kernels) {
    if (!std::holds_alternative<ScanMainloop>(kernel.phases.front().mainloop)) continue;
    ++scans;
    const NestSets sets(nest_of(kernel.phases.front()));
    EXPECT_FALSE(sets.broken_by(tiles({{"m", 64}})));
    EXPECT_FALSE(sets.crosses(tiles({{"n", 16}})));
    EXPECT_TRUE(sets.crosses(tiles({{"m", 64}})));
  }
  EXPECT_EQ(scans, 1U);
  const Plan plan = make_plan("coda", small_llama(), forward(1, 64));
  std::size_t attentions = 0;
  for (const Kernel& kernel : plan.kernels) {
    if (!std::holds_alternative<AttentionMainloop>(kernel.phases.front().mainloop)) continue;
    ++attentions;
    const NestSets sets(nest_of(kernel.phases.front()));
    EXPECT_FALSE(sets.crosses(tiles({{"m", 16}})));
    EXPECT_FALSE(sets.broken_by(tiles({{"m", 16}, {"s", 16}})));
    EXPECT_TRUE(sets.crosses(tiles({{"s", 16}})));
  }
  EXPECT_GT(attentions, 0U);
}

TEST(ProgramNest, AChainOfTwoProductsIsLegalInEitherOrderOfItsOuterLoops) {
  const NestSets sets(nest_of_chain(64, 96, 32, 48));
  EXPECT_FALSE(sets.broken_by(tiles({{"m", 16}, {"f", 32}})));
  EXPECT_FALSE(sets.broken_by(tiles({{"f", 32}, {"m", 16}})));
  EXPECT_FALSE(sets.crosses(tiles({{"m", 16}})));
  // A tile of h is not complete before all of k is summed.
  EXPECT_FALSE(sets.broken_by(tiles({{"m", 16}, {"f", 32}, {"k", 8}})));
  EXPECT_TRUE(sets.crosses(tiles({{"f", 32}})));  // y is a sum over all of f
  for (const char* array : {"a", "b", "h", "g", "c", "y"})
    EXPECT_TRUE(sets.footprint_is_rectangle(array)) << array;
}

}  // namespace
}  // namespace fuseline
