// Scans and convolutions as CUDA sources: what of a plan becomes a kernel, and what is refused.
#include "cuda/emit/scan_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cuda/emit/not_built.h"
#include "cuda/emit/plan_source.h"
#include "cuda/emit/stream_source.h"
#include "model/primitives/all_maps.h"
#include "model/primitives/all_reductions.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/model/scan_support.h"

namespace fuseline::cuda {
namespace {

using fuseline::test::GraphMaker;
using ::testing::HasSubstr;
using ::testing::Not;

class ScanSource : public test::CompileTest {
 protected:
  // Every kernel of the plan, for both architectures.
  void expect_plan_compiles(const Plan& plan) {
    for (const char* name : {"h200", "a100-sxm-80gb"}) {
      const Gpu gpu = load_gpu(name);
      const SmTarget target = target_of(gpu);
      if (!makes(target)) continue;
      for (const Kernel& kernel : plan.kernels) {
        SCOPED_TRACE(plan.policy + ' ' + kernel.name + ' ' + name);
        for (const Source& source : kernel_sources(plan, kernel, gpu, target))
          expect_compiles(source, source.name, target, {});
      }
    }
  }
};

// Groups of heads that no thread block has alone, heads and states of odd widths, 7 taps.
TEST_F(ScanSource, MixersOfOddSizesCompile) {
  for (const char* policy : {"unfused", "torch-compile", "coda"}) {
    expect_plan_compiles(make_plan(
        policy, fuseline::test::mixer_graph({6, 3, 13, 11, 2, 37, 5}, 72, 7, Dtype::bf16)));
    expect_plan_compiles(make_plan(
        policy, fuseline::test::mixer_graph({4, 2, 16, 16, 2, 64, 16}, 64, 4, Dtype::fp16)));
  }
}

TEST_F(ScanSource, RandomScansCompile) {
  std::mt19937 random(61);
  for (int round = 0; round < 12; ++round) {
    const fuseline::test::ScanCase c = fuseline::test::random_scan(random);
    SCOPED_TRACE(fuseline::test::describe(c));
    const Graph graph = round % 3 == 0 ? fuseline::test::scan_graph(c)
                                       : fuseline::test::selective_graph(c, round % 3 == 1);
    expect_plan_compiles(make_plan("per-operator", graph));
  }
}

// Every width of a thread block in chunks, for both kinds of decays, with states and without.
TEST_F(ScanSource, ChunksCompile) {
  for (const ScanShape& s :
       {ScanShape{80, 1, 64, 128, 2, 200, 256}, ScanShape{64, 2, 64, 128, 1, 200, 256},
        ScanShape{24, 1, 64, 128, 1, 200, 256}, ScanShape{8, 1, 48, 64, 1, 65, 64}}) {
    SCOPED_TRACE(fuseline::test::describe({s}));
    const fuseline::test::ScanCase c{s, true, true, Dtype::bf16};
    expect_plan_compiles(make_plan("per-operator", fuseline::test::scan_graph(c)));
    expect_plan_compiles(make_plan("per-operator", fuseline::test::selective_graph(c, false)));
  }
  expect_plan_compiles(make_plan(
      "coda", fuseline::test::mixer_graph({80, 1, 64, 128, 1, 128, 64}, 64, 4, Dtype::bf16)));
}

// The widest state that lanes hold, and a window over a cache's rows.
TEST_F(ScanSource, WideStatesAndWindowsOverACacheCompile) {
  expect_plan_compiles(make_plan(
      "per-operator", fuseline::test::scan_graph({.shape = {2, 1, 4, widest_state, 1, 9, 4}})));
  for (const std::int64_t taps : {2, 4})
    expect_plan_compiles(
        make_plan("per-operator", fuseline::test::conv_graph({3, 5, taps}, 24, true, Dtype::bf16)));
}

constexpr std::int64_t kShared = 227 * 1024, kMultiprocessors = 132;

std::string text_of(const Graph& graph, const Program& program) {
  return scan_kernel_source(graph, program, "A test.", kShared, kMultiprocessors).source.text;
}

TEST(ScanText, SaysHowItBeginsAndEnds) {
  const fuseline::test::ScanCase c{.shape = {6, 3, 13, 11, 2, 37, 5}, .state = true};
  const Plan in_place = make_plan("per-operator", fuseline::test::selective_graph(c, true));
  const std::string text = text_of(in_place.graph, in_place.kernels[0].phases[0]);
  EXPECT_THAT(text, HasSubstr("decay = Decay::of_columns;"));
  EXPECT_THAT(text, HasSubstr("begins = true, ends = true;"));
  // Groups of 11 numbers begin at no whole vector.
  EXPECT_THAT(text, HasSubstr("Tile<float, false> k;"));
  const Plan given = make_plan("per-operator", fuseline::test::scan_graph({.shape = c.shape}));
  const std::string from_zero = text_of(given.graph, given.kernels[0].phases[0]);
  EXPECT_THAT(from_zero, HasSubstr("decay = Decay::given;"));
  EXPECT_THAT(from_zero, HasSubstr("begins = false, ends = false;"));
  EXPECT_THAT(from_zero, Not(HasSubstr("rates")));
}

// Whether tokens go in chunks is known from the operands, and from what a thread block may have.
TEST(ScanText, GoesInChunksWhereItCan) {
  const fuseline::test::ScanCase c{.shape = {80, 1, 64, 128, 1, 200, 256}, .dtype = Dtype::bf16};
  const Plan plan = make_plan("per-operator", fuseline::test::selective_graph(c, false));
  const Program& program = plan.kernels[0].phases[0];
  const ScanKernelSource chunks =
      scan_kernel_source(plan.graph, program, "A test.", kShared, kMultiprocessors);
  EXPECT_THAT(chunks.source.text, HasSubstr("cols = 64, numbers = 128, across = 1, units = 4;"));
  EXPECT_THAT(chunks.source.text, HasSubstr("using Element = bf16;"));
  EXPECT_THAT(chunks.source.text, HasSubstr("scan_chunks<"));
  EXPECT_EQ(chunks.blocks, 80);
  EXPECT_EQ(chunks.threads, 384);
  const ScanKernelSource walk =
      scan_kernel_source(plan.graph, program, "A test.", 48 * 1024, kMultiprocessors);
  EXPECT_THAT(walk.source.text, HasSubstr("together = 4"));
  EXPECT_THAT(walk.source.text, Not(HasSubstr("scan_chunks")));
}

// What follows is written as in a kernel of tiles, on the mainloop's result.
TEST(ScanText, TheBodyFollowsTheMainloop) {
  const Graph graph = fuseline::test::mixer_graph({4, 1, 16, 16, 2, 64, 16}, 64, 4, Dtype::bf16);
  const Plan plan = make_plan("coda", graph);
  const auto scan =
      std::ranges::find(plan.kernels, KernelKind::scan, [](const Kernel& k) { return k.kind; });
  ASSERT_NE(scan, plan.kernels.end());
  const std::string text = text_of(plan.graph, scan->phases[0]);
  EXPECT_THAT(text, HasSubstr("const auto y = place.result();"));
  EXPECT_THAT(text, HasSubstr("store_tile(p.out0, place, "));
}

TEST(ScanText, ConvolutionsReachBack) {
  const auto source_of = [](const Graph& graph) {
    const Plan plan = make_plan("per-operator", graph);
    return stream_kernel_source(plan.graph, plan.kernels[0].phases[0], "A test.").source.text;
  };
  EXPECT_THAT(source_of(fuseline::test::conv_graph({3, 5, 4}, 24, false)),
              HasSubstr("convolve_rows<4>(p.in0, p.weight0, p.tokens0, place)"));
  EXPECT_THAT(source_of(fuseline::test::conv_graph({3, 5, 3}, 24, true)),
              HasSubstr("convolve_rows<3>(p.in0, p.weight0, p.before0, p.tokens0, place)"));
}

// ---- what is refused ----

Program behind_a_scan(std::vector<Primitive> body) {
  ScanMainloop m;
  m.shape = {2, 1, 8, 8, 1, 4, 4};
  return {.name = "scan", .mainloop = m, .body = std::move(body)};
}

TEST(ScanNotBuilt, NamesWhatNoScanDoes) {
  const Operand tile{.tensor = {}, .cols = 16, .rows = 4};
  EXPECT_EQ(
      not_built(behind_a_scan({LoadTile{1, tile}, Map{2, maps::add, {0, 1}}, StoreTile{2, tile}})),
      "");
  EXPECT_EQ(not_built(behind_a_scan({TileReduce{reductions::sum, Axis::rows, 0, tile}})),
            "tile_reduce behind a scan");
  EXPECT_EQ(not_built(behind_a_scan({RowReduce{1, reductions::sum, 0}})),
            "row_reduce behind a scan");
  EXPECT_EQ(not_built(behind_a_scan({Columns{1, 0, 0, 8}, StoreTile{1, tile}})),
            "columns behind a scan");
  EXPECT_EQ(not_built(behind_a_scan({GroupReduce{1, reductions::sum_squares, 0, 8}})),
            "group_reduce behind a scan");
  Program wide = behind_a_scan({});
  std::get<ScanMainloop>(wide.mainloop).shape.state_width = widest_state;
  EXPECT_EQ(not_built(wide), "");
  std::get<ScanMainloop>(wide.mainloop).shape.state_width = widest_state + 1;
  EXPECT_EQ(not_built(wide), "a scan whose state has 1025 columns, more than 1024,");
}

TEST(ScanNotBuilt, NamesTheGradientsThatLack) {
  Program back = behind_a_scan({});
  std::get<ScanMainloop>(back.mainloop).gradient = ScanGradient{};
  EXPECT_EQ(not_built(back),
            "the gradient of a scan without rates, or from and to states of a cache");
  Program keeping = behind_a_scan({});
  std::get<ScanMainloop>(keeping.mainloop).state_after =
      Operand{.tensor = {}, .cols = 8, .rows = 32};
  EXPECT_EQ(not_built(keeping), "");

  const Operand rows{.tensor = {}, .cols = 16, .rows = 4};
  const Program sums{.name = "sums",
                     .mainloop = StreamMainloop{4, 16},
                     .body = {LoadTile{1, rows}, SumSequences{1, rows, 2}}};
  EXPECT_EQ(not_built(sums), "");
  const Program taps{.name = "taps",
                     .mainloop = StreamMainloop{4, 16},
                     .body = {LoadTile{1, rows}, SumTaps{1, 1, rows, {1, 4, 2}}}};
  EXPECT_EQ(not_built(taps), "");
  const Program conv{.name = "conv",
                     .mainloop = StreamMainloop{4, 16},
                     .body = {ConvolveBack{1, rows, rows, {1, 4, 2}}, StoreTile{1, rows}}};
  EXPECT_EQ(not_built(conv), "");
}

}  // namespace
}  // namespace fuseline::cuda
