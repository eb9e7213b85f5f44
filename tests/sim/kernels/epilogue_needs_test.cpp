#include "sim/kernels/epilogue_needs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/program_streams.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

Program program_of_kernel(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.kernels, name, &Kernel::name);
  EXPECT_NE(found, plan.kernels.end()) << name;
  return found->phases.front();
}

TEST(EpilogueNeeds, OfResidualWithStatistics) {
  const Plan plan = make_plan("coda", build_block(load_model("llama2-7b"), test::forward(1, 256)));
  const EpilogueNeeds needs = epilogue_needs(program_of_kernel(plan, "oproj"));
  EXPECT_EQ(needs.row_partial_cols, 128);  // one partial of 128 columns
  EXPECT_EQ(needs.tile_loads, 1);          // the residual stream
  EXPECT_FALSE(needs.reduces_columns);
  EXPECT_TRUE(fits(needs, {.m = 128, .n = 256}));
  EXPECT_FALSE(fits(needs, {.m = 128, .n = 192})) << "a partial would have two owners";
}

TEST(EpilogueNeeds, ColumnSumsWantTilesOf128Rows) {
  EpilogueNeeds needs;
  needs.reduces_columns = true;
  EXPECT_TRUE(fits(needs, {.m = 128, .n = 128}));
  EXPECT_FALSE(fits(needs, {.m = 64, .n = 128}));
}

// The sums of a norm's weight are only added up: the sum of a tile may be of any rows.
TEST(EpilogueNeeds, ColumnSumsThatAreOnlyAddedUpMayBeOfAnyRows) {
  const Plan plan = make_plan("coda", build_block(load_model("llama2-7b"), test::train(1, 256)));
  const Program& program = program_of_kernel(plan, "d_gate_up");
  const GemmTile high{.m = 176, .n = 128, .cluster_n = 2};
  const EpilogueNeeds needs = epilogue_needs(program, plan.graph);
  EXPECT_TRUE(needs.sums_of_any_rows);
  EXPECT_EQ(needs.column_sums, 1);
  EXPECT_TRUE(fits(needs, high));
  EXPECT_FALSE(fits(needs, {.m = 112, .n = 128, .cluster_n = 2})) << "more tiles than numbers";
  EXPECT_FALSE(fits(needs, {.m = 256, .n = 128, .cluster_n = 2})) << "registers";
  EXPECT_FALSE(fits(needs, {.m = 256, .n = 128})) << "upright";
  EXPECT_FALSE(fits(epilogue_needs(program), high)) << "who reads the numbers is not known";
  // Where anybody else reads them, each must be of its 128 rows.
  Graph other = plan.graph;
  for (const Primitive& p : program.body)
    for (const Access& a : p.accesses())
      if (a.reach == Reach::partials && a.along == Axis::cols) {
        Op copy = other.op(other.consumers(a.operand.tensor).front());
        copy.name = "also";
        copy.kind = other.op(*plan.kernels.front().ops.begin()).kind;
        other.add_op(copy);
      }
  EXPECT_FALSE(epilogue_needs(program, other).sums_of_any_rows);
}

// A high tile's two boxes of 64 columns lie in two stages of the ring; three would need a third.
TEST(EpilogueNeeds, WhatASlabOfATurnedTileLoadsTakesTwoStages) {
  const GemmTile high{.m = 208, .n = 128, .cluster_n = 2};
  EXPECT_TRUE(fits({.tile_loads = 2}, high));
  EXPECT_FALSE(fits({.tile_loads = 3}, high));
  EXPECT_FALSE(fits({.tile_loads = 2}, {.m = 272, .n = 128, .cluster_n = 2}))
      << "the copy engine's boxes have 256 rows at most";
  EXPECT_TRUE(fits({.tile_loads = 4}, {.m = 64, .n = 128, .cluster_n = 2}));
}

// Two consumers have half of the columns each, and threads of another warp have a row's numbers.
TEST(EpilogueNeeds, OfTurnedTiles) {
  const GemmTile narrow{.m = 272, .n = 128, .cluster_n = 2},
      wide{.m = 128, .n = 256, .cluster_n = 2};
  EXPECT_TRUE(fits({}, narrow));
  EXPECT_TRUE(fits({}, wide));
  EXPECT_FALSE(fits({.reduces_columns = true}, wide)) << "column sums are of 128 rows";
  EXPECT_TRUE(fits({.row_partial_cols = 128}, wide));
  EXPECT_TRUE(fits({.row_partial_cols = 128}, narrow)) << "its two owners join their halves";
  EXPECT_FALSE(fits({.row_partial_cols = 256}, narrow));
  EXPECT_FALSE(fits({.row_partial_cols = 128, .whole_partials = true}, narrow));
  EXPECT_TRUE(fits({.row_partial_cols = 128, .whole_partials = true}, wide));
  EXPECT_TRUE(fits({.tile_loads = 1}, wide));
  EXPECT_FALSE(fits({.tile_loads = 1}, narrow)) << "the copy engine's boxes have 256 rows at most";
  EXPECT_FALSE(fits({.rows_in_runs = true}, wide)) << "its tiles begin at any row";
  EXPECT_TRUE(fits({.column_group = 64}, narrow));
  EXPECT_FALSE(fits({.column_group = 128}, wide)) << "groups that are wider than a slab";
  EXPECT_FALSE(fits({.column_group = 64, .slab_groups = 4}, wide));
  EXPECT_FALSE(fits({.live_registers = 96}, wide)) << "beside 128 accumulators";
  EXPECT_FALSE(fits({.loads_tables = true, .late_tables = true}, wide));
  EXPECT_TRUE(fits({.live_registers = 32, .loads_tables = true, .table_registers = 32}, wide));
  EXPECT_FALSE(fits({.live_registers = 40, .loads_tables = true, .table_registers = 32}, wide));
  const GemmTile tall{.m = 320, .n = 128, .cluster_n = 2},
      large{.m = 160, .n = 256, .cluster_n = 2};
  EXPECT_FALSE(fits({.live_registers = 32}, large));
  EXPECT_TRUE(fits({}, tall)) << "three stages: the sums change their threads in store buffers";
  EXPECT_FALSE(fits({}, {.m = 336, .n = 128, .cluster_n = 2})) << "no registers are left";
  EXPECT_TRUE(fits({.only_stores = true}, large));
  EXPECT_TRUE(fits({.only_stores = true}, tall));
}

// Values that do not fit wide slabs beside the accumulators of large tiles do in smaller ones.
TEST(EpilogueNeeds, SlabsAreWideWhereRegistersPermit) {
  const auto turned = [](std::int64_t rows) {
    return GemmTile{.m = rows, .n = 128, .cluster_n = 2};
  };
  const GemmTile upright{.m = 128, .n = 256, .cluster_m = 2}, narrow{.m = 128, .n = 192};
  EpilogueNeeds needs{.column_sums = 3, .slab_groups = 4, .wide_registers = 80};
  EXPECT_EQ(slab_groups_of(needs, turned(144)), 8);
  EXPECT_EQ(slab_groups_of(needs, turned(192)), 4) << "32 bytes would spill";
  EXPECT_EQ(slab_groups_of(needs, narrow), 8);
  EXPECT_EQ(slab_groups_of(needs, upright), 4) << "96 bytes would spill";
  needs.wide_registers = 64;
  EXPECT_EQ(slab_groups_of(needs, upright), 8);
  needs.wide_registers = 0;
  EXPECT_EQ(slab_groups_of(needs, narrow), 4) << "the program has none that would fit";
  EXPECT_EQ(slab_groups_of({.wide_registers = 0}, upright), 8);
  EXPECT_EQ(slab_groups_of({.slab_groups = 4, .wide_registers = 16}, {.m = 64, .n = 128}), 4);
  const auto of = [](const char* model, Phase phase, const char* kernel) {
    return epilogue_needs(
               program_of_kernel(
                   make_plan("coda", build_block(load_model(model), phase == Phase::train
                                                                        ? test::train(1, 256)
                                                                        : test::forward(1, 256))),
                   kernel))
        .wide_registers;
  };
  EXPECT_GT(of("gpt2-xl", Phase::train, "d_up"), 0);
  EXPECT_EQ(of("vit-l", Phase::train, "d_down"), 0) << "erf would spill";
  EXPECT_EQ(of("qwen3-8b", Phase::forward, "qkv"), 0) << "norms of heads are summed within a slab";
}

TEST(EpilogueNeeds, PlainProductsAndTablesAreSeen) {
  const auto needs = [](const char* policy, const char* kernel) {
    const Plan plan =
        make_plan(policy, build_block(load_model("llama2-7b"), test::forward(1, 256)));
    return epilogue_needs(program_of_kernel(plan, kernel));
  };
  EXPECT_TRUE(needs("per-operator", "oproj").only_stores);
  EXPECT_FALSE(needs("coda", "oproj").only_stores);
  EXPECT_FALSE(needs("coda", "oproj").loads_tables);
  EXPECT_TRUE(needs("coda", "qkv").loads_tables);
}

// Instructions for each element of the product, by hand from the program's text.
TEST(EpilogueNeeds, InstructionsOfFunctionsAreCounted) {
  const auto of = [](const char* model, const char* kernel, Phase phase = Phase::forward) {
    Workload work = test::forward(1, 256);
    work.phase = phase;
    const Plan plan = make_plan("coda", build_block(load_model(model), work));
    return epilogue_needs(program_of_kernel(plan, kernel)).instructions;
  };
  // y r; of every second column gate sigmoid(gate) up.
  EXPECT_NEAR(of("llama2-7b", "gate_up"), 1 + 6 / 2.0, 1e-12);
  // y r; two thirds are rotated, by numbers of two tables.
  EXPECT_NEAR(of("llama2-7b", "qkv"), 1 + (2 + 3.75 + 3.75) * 2 / 3.0, 1e-12);
  // y + b, then erf.
  EXPECT_NEAR(of("bert-large", "up"), 1 + 24.5, 1e-12);
  // y r - r mu gW + bW and the sigmoid.
  EXPECT_NEAR(of("gpt2-large", "up"), 4 + 8, 1e-12);
  // Sums over heads are alike in a whole head: their mean and root are computed once.
  EXPECT_NEAR(of("qwen3-8b", "qkv"), 1 + (1.5 + 1 + 3.75 + 1 + 9.5) * 5 / 6.0, 1e-12);
  EXPECT_EQ(of("llama2-7b", "oproj"), 1) << "only the residual's sum";
}

TEST(EpilogueNeeds, RowsThatLieApartAreSeen) {
  Workload work = test::forward(2, 256);
  const Plan plan = make_plan("coda", build_block(load_model("sd3-medium"), work));
  const auto apart = [&](const Kernel& kernel) {
    const auto* gemm = std::get_if<GemmMainloop>(&kernel.phases.front().mainloop);
    return gemm != nullptr && epilogue_needs(kernel.phases.front()).rows_in_runs;
  };
  EXPECT_TRUE(std::ranges::any_of(plan.kernels, apart)) << "streams of joint sequences";
}

TEST(EpilogueNeeds, RegistersLimitTheWidth) {
  EpilogueNeeds needs;
  needs.live_registers = 96;  // beside 128 accumulators of 256 columns: 224 > 216
  EXPECT_FALSE(fits(needs, {.m = 128, .n = 256}));
  EXPECT_TRUE(fits(needs, {.m = 128, .n = 192}));
}

TEST(EpilogueNeeds, ASlabsLoadsFitOneStage) {
  EpilogueNeeds needs;
  needs.tile_loads = 2;  // 2 · 128 rows · 128 bytes: all of a stage of 128 x 128
  EXPECT_TRUE(fits(needs, {.m = 128, .n = 128}));
  needs.col_loads = 1;
  EXPECT_FALSE(fits(needs, {.m = 128, .n = 128}));
  EXPECT_TRUE(fits(needs, {.m = 128, .n = 256}));
}

TEST(EpilogueNeeds, EverySlabOfATileOf64RowsHasAPlaceInTheRing) {
  EpilogueNeeds needs;
  EXPECT_TRUE(fits(needs, {.m = 64, .n = 256}));
  needs.tile_loads = 1;  // four slabs, four stages: none is left
  EXPECT_FALSE(fits(needs, {.m = 64, .n = 256}));
  EXPECT_TRUE(fits(needs, {.m = 64, .n = 192}));
}

TEST(EpilogueNeeds, PartialSumsOfAClusterLeaveRoomForFourStages) {
  const EpilogueNeeds needs;
  EXPECT_TRUE(fits(needs, {.m = 64, .n = 64, .cluster_k = 4}));   // 48 KiB of sums
  EXPECT_TRUE(fits(needs, {.m = 64, .n = 128, .cluster_k = 4}));  // 96 KiB, and 4 stages of 24
  EXPECT_TRUE(fits(needs, {.m = 64, .n = 192, .cluster_k = 2}));
  EXPECT_FALSE(fits(needs, {.m = 64, .n = 192, .cluster_k = 4}));
  EXPECT_FALSE(fits(needs, {.m = 64, .n = 256, .cluster_k = 2}));
  EXPECT_FALSE(fits(needs, {.m = 128, .n = 64, .cluster_k = 2}));  // made by both consumers
}

// The simulator's choice is one that the kernels have: no GEMM of any plan is left without.
TEST(EpilogueNeeds, EveryProgramHasATile) {
  for (const char* model : {"llama2-7b", "gpt2-xl", "llama2-70b"}) {
    for (const Workload& work :
         {test::forward(1, 512), test::decode(16, 1, 512), test::train(1, 512)}) {
      for (const char* policy : {"coda", "per-operator"}) {
        const Plan plan = make_plan(policy, build_block(load_model(model), work));
        const AddressMap addresses(plan);
        for (const char* gpu_name : {"h200", "a100-sxm-80gb"}) {
          const Gpu gpu = load_gpu(gpu_name);
          for (const Kernel& kernel : plan.kernels) {
            for (const Program& phase : kernel.phases) {
              if (!std::holds_alternative<GemmMainloop>(phase.mainloop)) continue;
              const GemmProblem problem = gemm_problem_of(phase, addresses, false);
              const GemmTile tile = choose_tile(problem, gpu);
              EXPECT_TRUE(gpu_name[0] == 'a' || fits(problem.needs, tile))
                  << model << ' ' << policy << ' ' << kernel.name;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuseline
