#include "sim/gpu/plan_target.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

TEST(PlanTarget, AnH200HasTheBudgetsOfAPlanForNoGpu) {
  const Target target = plan_target(test_gpu());
  EXPECT_EQ(target.name, "test-gpu");
  EXPECT_EQ(target.shared_bytes_per_block, Target{}.shared_bytes_per_block);
  EXPECT_EQ(target.tile, Target{}.tile);
  EXPECT_EQ(target.operand_tiles(), 4);
}

TEST(PlanTarget, LessSharedMemoryHoldsFewerOperands) {
  Gpu gpu = test_gpu();
  gpu.smem_per_block_max = Bytes(163 << 10);  // 96 KiB of stages, 32 KiB an operand
  EXPECT_EQ(plan_target(gpu).operand_tiles(), 2);
  gpu.smem_per_block_max = Bytes(99 << 10);  // two stages
  EXPECT_EQ(plan_target(gpu).tile.stages, 2);
  EXPECT_EQ(plan_target(gpu).operand_tiles(), 1);
  gpu.smem_per_block_max = Bytes(64 << 10);  // a smaller tile
  const Target small = plan_target(gpu);
  EXPECT_LT(small.tile.m * small.tile.n, 128 * 128);
  EXPECT_GE(small.operand_tiles(), 1);
}

TEST(PlanTarget, EveryShippedGpuHasRoomForAnOperand) {
  for (const std::string& name : gpu_names()) {
    const Target target = plan_target(load_gpu(name));
    EXPECT_GE(target.operand_tiles(), 1) << name;
    EXPECT_LE(target.stage_bytes(), target.shared_bytes_per_block) << name;
  }
}

}  // namespace
}  // namespace fuseline
