// Every GEMM program of every policy becomes a kernel that compiles without spills, with the
// instructions that its mainloop is made for.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cuda/emit/kernel_source.h"
#include "cuda/emit/not_built.h"
#include "cuda/kernels/batch.cuh"
#include "sim/executor/tile_interpreter.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/program_streams.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr GemmTile kLargeTile{.m = 128, .n = 256, .cluster_m = 2};

class SlowGemmSources : public test::CompileTest {
 protected:
  // On the largest tile, and on the one that the simulator chooses for `gpu`.
  void compile_all(Phase phase, SmTarget target, const std::string& gpu,
                   const std::vector<std::string>& models = test::models_of_all_kinds()) {
    if (IsSkipped()) return;
    if (!makes(target)) GTEST_SKIP() << "the toolkit makes no " << name_of(target) << " code";
    const std::vector<std::string> instructions =
        target == SmTarget::sm_90a
            ? std::vector<std::string>{"wgmma.mma_async", "cp.async.bulk.tensor",
                                       "fence.proxy.async"}
            : std::vector<std::string>{"mma.sync", "cp.async"};
    const Gpu described = load_gpu(gpu);
    test::for_each_program(phase, models, [&](const Plan& plan, const Program& program) {
      if (!std::holds_alternative<GemmMainloop>(program.mainloop)) return;
      if (!not_built(program).empty()) return;
      const GemmTile chosen =
          choose_tile(gemm_problem_of(program, AddressMap(plan), false), described);
      for (const GemmTile& tile : {kLargeTile, chosen}) {
        const GemmKernelSource kernel =
            gemm_kernel_source(plan.graph, program, tile, target, "test");
        expect_compiles(kernel.source, kernel.function, target, instructions);
      }
    });
    EXPECT_GT(seen_.size(), 10U);
  }
};

TEST_F(SlowGemmSources, ForwardOnHopper) { compile_all(Phase::forward, SmTarget::sm_90a, "h200"); }
TEST_F(SlowGemmSources, DecodeOnHopper) { compile_all(Phase::decode, SmTarget::sm_90a, "h200"); }
TEST_F(SlowGemmSources, TrainOnHopper) { compile_all(Phase::train, SmTarget::sm_90a, "h200"); }
// All tiles of the menu that are cut along K, of which a plain product's parts add up together.
TEST_F(SlowGemmSources, EveryTileInPartsOnHopper) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no code for Hopper";
  const Plan plan = make_plan("unfused", load_model("llama2-7b"), test::workload(Phase::forward));
  const Program& oproj = test::program_of(plan, "oproj");
  int turned = 0, upright = 0;
  for (GemmTile tile : load_gpu("h200").architecture->tiles.own) {
    if (tile.tail_parts == 1) continue;
    tile.tail_parts = 9;
    const GemmKernelSource kernel =
        gemm_kernel_source(plan.graph, oproj, tile, SmTarget::sm_90a, "test");
    ASSERT_EQ(kernel.config.tail_parts, 9);
    ++(tile.turned() ? turned : upright);
    expect_compiles(kernel.source, kernel.function, SmTarget::sm_90a,
                    {"wgmma.mma_async", "red.release.gpu.global.add.u32"});
  }
  EXPECT_GT(turned, 10);
  EXPECT_GT(upright, 5);
}

TEST_F(SlowGemmSources, ForwardOnAmpere) {
  compile_all(Phase::forward, SmTarget::sm_80, "a100-sxm-80gb");
}
TEST_F(SlowGemmSources, DecodeOnAmpere) {
  compile_all(Phase::decode, SmTarget::sm_80, "a100-sxm-80gb");
}
TEST_F(SlowGemmSources, TrainOnAmpere) {
  compile_all(Phase::train, SmTarget::sm_80, "a100-sxm-80gb");
}

// The largest turned tiles that fit, also those that the simulator does not choose: registers are
// what they are short of.
TEST_F(SlowGemmSources, TurnedTilesOnHopper) {
  if (IsSkipped()) return;
  std::map<std::string, int> taken;
  for (const Phase phase : {Phase::forward, Phase::train})
    test::for_each_program(
        phase, {"llama2-7b", "gpt2-xl"}, [&](const Plan& plan, const Program& program) {
          const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
          if (gemm == nullptr || !not_built(program).empty()) return;
          for (const GemmTile& tile : {GemmTile{.m = 320, .n = 128, .cluster_n = 2},
                                       GemmTile{.m = 240, .n = 128, .cluster_n = 2},
                                       GemmTile{.m = 160, .n = 256, .cluster_n = 2},
                                       GemmTile{.m = 112, .n = 256, .cluster_n = 2}}) {
            const GemmKernelSource kernel =
                gemm_kernel_source(plan.graph, program, tile, SmTarget::sm_90a, "test");
            if (!kernel.config.turned) continue;
            ++taken[fmt::format("{} x {}", tile.m, tile.n)];
            expect_compiles(kernel.source, kernel.function, SmTarget::sm_90a, {"wgmma.mma_async"});
          }
        });
  EXPECT_EQ(taken.size(), 4U);
}

class LongGemmSources : public SlowGemmSources {};

TEST_F(LongGemmSources, OfAllModelsCompileForHopper) {
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train})
    compile_all(phase, SmTarget::sm_90a, "h200", model_names());
}
TEST_F(LongGemmSources, OfAllModelsCompileForAmpere) {
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train})
    compile_all(phase, SmTarget::sm_80, "a100-sxm-80gb", model_names());
}

Plan unfused(const std::string& model, Phase phase) {
  return make_plan("unfused", load_model(model), test::workload(phase));
}

TEST(GemmSource, ProductsInBatchesSayIt) {
  const Plan plan = unfused("llama2-7b", Phase::forward);
  const auto text = [&](const char* kernel, SmTarget target) {
    return gemm_kernel_source(plan.graph, test::program_of(plan, kernel), kLargeTile, target,
                              "test")
        .source.text;
  };
  EXPECT_THAT(text("scores", SmTarget::sm_90a), HasSubstr("false, false, true, 1, 128>;"));
  EXPECT_THAT(text("context", SmTarget::sm_80),
              HasSubstr("Sm80Config<bf16, 128, false, true, true>"));
  EXPECT_THAT(text("qkv", SmTarget::sm_90a), HasSubstr("false, false, false, 1, 128>;"));
}

// Where launches overlap, weights are asked for before the kernel before has ended, and nothing
// else. Every kernel says when the next may begin.
TEST(GemmSource, OnlyWeightsComeBeforeTheKernelBeforeHasEnded) {
  const Plan plan = unfused("llama2-7b", Phase::train);
  const auto text = [&](const char* name, const GemmTile& tile, SmTarget target) {
    return gemm_kernel_source(plan.graph, test::program_of(plan, name), tile, target, "test")
        .source.text;
  };
  const GemmTile turned{.m = 272, .n = 128, .cluster_n = 2};
  const char* const early = "weights_first = true";
  for (const GemmTile& tile : {kLargeTile, turned}) {
    EXPECT_THAT(text("qkv", tile, SmTarget::sm_90a), HasSubstr(early));
    EXPECT_THAT(text("qkv", tile, SmTarget::sm_90a), HasSubstr("let_the_next_kernel_begin();"));
    EXPECT_THAT(text("qkv", tile, SmTarget::sm_90a), Not(HasSubstr("begin_behind")));
  }
  // Both operands of a weight's gradient, and of scores, come from kernels.
  for (const char* name : {"dw_qkv", "scores"})
    EXPECT_THAT(text(name, kLargeTile, SmTarget::sm_90a), Not(HasSubstr(early))) << name;
  EXPECT_THAT(text("qkv", kLargeTile, SmTarget::sm_80), Not(HasSubstr(early)));
  EXPECT_THAT(text("qkv", kLargeTile, SmTarget::sm_80),
              HasSubstr("begin_behind_the_kernel_before();"));
}

// The host stores boxes of what the kernel sees at once.
TEST(GemmSource, SlabsAreAsWideAsTheTilePermits) {
  const Plan plan = make_plan("coda", load_model("gpt2-xl"), test::workload(Phase::train));
  const Program& program = test::program_of(plan, "d_up");
  const auto groups = [&](const GemmTile& tile, SmTarget target) {
    const GemmKernelSource kernel = gemm_kernel_source(plan.graph, program, tile, target, "test");
    EXPECT_THAT(kernel.source.text,
                HasSubstr(fmt::format("slab_groups = {};", kernel.slab_groups)));
    return kernel.slab_groups;
  };
  const GemmTile low{.m = 144, .n = 128, .cluster_n = 2}, high{.m = 176, .n = 128, .cluster_n = 2};
  EXPECT_EQ(groups(low, SmTarget::sm_90a), 8);
  EXPECT_EQ(groups(high, SmTarget::sm_90a), 4);
  EXPECT_EQ(groups(kLargeTile, SmTarget::sm_90a), 4);
  EXPECT_EQ(groups(low, SmTarget::sm_80), 4);
}

TEST(GemmSource, TurnedTilesChangeTheOperandsPlaces) {
  const Plan plan = unfused("llama2-7b", Phase::train);
  const auto kernel = [&](const char* name, const GemmTile& tile) {
    return gemm_kernel_source(plan.graph, test::program_of(plan, name), tile, SmTarget::sm_90a,
                              "test");
  };
  const GemmTile tile{.m = 272, .n = 128, .cluster_n = 2};
  const GemmKernelSource qkv = kernel("qkv", tile);
  EXPECT_TRUE(qkv.config.turned);
  EXPECT_THAT(qkv.source.text, HasSubstr("Sm90Config<bf16, 128, 272, 2, Schedule::cooperative, "
                                         "false, false, false, 1, 128, false, false, false, "
                                         "false, true>;"));
  EXPECT_THAT(qkv.source.text, HasSubstr("only_stores = true"));
  EXPECT_FALSE(kernel("scores", tile).config.turned) << "a batch";
}

// Tiles are cut along K whatever the epilogue does.
TEST(GemmSource, TurnedTilesAreCutAlongK) {
  const GemmTile turned{.m = 176, .n = 128, .cluster_n = 2, .tail_parts = 5};
  const GemmTile upright{.m = 128, .n = 256, .tail_parts = 5};
  const auto kernel = [](const char* policy, const GemmTile& tile) {
    const Plan plan = make_plan(policy, load_model("llama2-7b"), test::workload(Phase::forward));
    return gemm_kernel_source(plan.graph, test::program_of(plan, "oproj"), tile, SmTarget::sm_90a,
                              "test");
  };
  const GemmKernelSource plain = kernel("unfused", turned);
  EXPECT_EQ(plain.config.tail_parts, 5);
  EXPECT_THAT(plain.source.text, HasSubstr("128, false, false, false, true, true>;"));
  EXPECT_TRUE(kernel("coda", turned).config.turned);
  EXPECT_EQ(kernel("coda", turned).config.tail_parts, 5);
  EXPECT_EQ(kernel("coda", upright).config.tail_parts, 5);
  EXPECT_EQ(kernel("unfused", upright).config.tail_parts, 5);
}

TEST(GemmSource, NoTileIsWiderThanTheProductNeeds) {
  const Plan plan = unfused("gpt2-xl", Phase::forward);  // heads of 64 columns
  const Program& context = test::program_of(plan, "context");
  const GemmKernelSource kernel =
      gemm_kernel_source(plan.graph, context, kLargeTile, SmTarget::sm_90a, "test");
  EXPECT_EQ(kernel.config.tile_n, 64);
}

TEST(GemmSource, PartsOfKAreAClusterWhereTheTileIsLow) {
  const Plan plan = make_plan("coda", load_model("llama2-7b"), fuseline::test::decode(1, 1, 2048));
  const Program& oproj = test::program_of(plan, "oproj");
  const auto kernel = [&](const GemmTile& tile, SmTarget target = SmTarget::sm_90a) {
    return gemm_kernel_source(plan.graph, oproj, tile, target, "test");
  };
  const GemmKernelSource split = kernel({.m = 64, .n = 128, .cluster_k = 4});
  EXPECT_EQ(split.config.cluster_k, 4);
  EXPECT_THAT(split.source.text, HasSubstr("__cluster_dims__(4, 1, 1)"));
  EXPECT_THAT(split.source.text, HasSubstr("ping_pong, false, false, false, 4, 8>;"));
  EXPECT_EQ(kernel({.m = 128, .n = 128, .cluster_k = 4}).config.cluster_k, 1);
  EXPECT_EQ(kernel({.m = 64, .n = 128, .cluster_k = 4}, SmTarget::sm_80).config.cluster_k, 1);
}

// The image's rows of joint sequences: no tile meets two of its runs of 1,024 rows, while those of
// the text have 154. On Ampere both are copied together first.
TEST(GemmSource, TilesWithinARunAreLoadedFromIt) {
  Workload work = test::workload(Phase::forward);
  work.batch = 2;
  const Plan plan = make_plan("coda", load_model("sd3-medium"), work);
  const auto apart = [&](const char* kernel, SmTarget target) {
    return gemm_kernel_source(plan.graph, test::program_of(plan, kernel), kLargeTile, target,
                              "test")
        .config.a_apart;
  };
  EXPECT_TRUE(apart("image_oproj", SmTarget::sm_90a));
  EXPECT_FALSE(apart("text_oproj", SmTarget::sm_90a));
  EXPECT_FALSE(apart("image_up", SmTarget::sm_90a));
  EXPECT_FALSE(apart("image_oproj", SmTarget::sm_80));
}

TEST(GemmSource, LoadsBehindABatchAreRefused) {
  const Plan plan = unfused("llama2-7b", Phase::forward);
  Program scores = test::program_of(plan, "scores");
  const StoreTile store = *scores.body.back().as<StoreTile>();
  scores.body.insert(scores.body.begin(), LoadTile{store.in + 1, store.to});
  EXPECT_THROW((void)gemm_kernel_source(plan.graph, scores, kLargeTile, SmTarget::sm_90a, "test"),
               InternalError);
}

// Where the kernels find a batch's matrices is where the executor finds them.
TEST(BatchPlace, IsTheExecutorsCorner) {
  struct Case {
    std::int64_t batch, rows, cols, height, width;
  };
  // 3 sequences of 6 query heads over 2 key heads, 5 tokens, heads of 8: q, k, scores.
  for (const Case& c : {Case{18, 15, 48, 5, 8}, Case{18, 15, 16, 5, 8}, Case{18, 90, 7, 5, 7}}) {
    Operand operand;
    operand.rows = c.rows;
    operand.cols = c.cols;
    const std::int64_t stacked = c.rows / c.height;
    gpu::BatchPlace place;
    place.share = static_cast<int>(c.batch / stacked);
    place.beside = static_cast<int>(c.cols / c.width);
    for (int i = 0; i < c.batch; ++i) {
      const Corner corner = corner_of(operand, c.batch, i, c.height, c.width);
      EXPECT_EQ(place.stack(i) * c.height, corner.row) << i;
      EXPECT_EQ(place.head(i) * c.width, corner.col) << i;
    }
  }
}

}  // namespace
}  // namespace fuseline::cuda
