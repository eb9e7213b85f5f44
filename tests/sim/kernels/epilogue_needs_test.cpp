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
