// Two products in one kernel, predicted: who makes what, never less than the loop nests' bound, and
// slower with every row whose parts go through L2.
#include "sim/kernels/chain_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/blocks/block.h"
#include "model/chain.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"
#include "sim/nests/chain_traffic.h"
#include "sim/sure/estimate_bands.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

Plan planned(std::int64_t batch, bool chained, const Gpu& gpu) {
  std::vector<OnChipEdge> on_chip = {{"gate_up", "swiglu"}, {"down", "residual2"}};
  if (chained) on_chip.push_back({"swiglu", "down"});
  return make_custom_plan(build_block(load_model("tinyllama"), test::decode(batch, 1, 2048)),
                          {"interleave_gate_up", "chain_products"}, on_chip, plan_target(gpu));
}

const KernelEstimate& kernel_of(const PlanEstimate& e, const std::string& name) {
  const auto found = std::ranges::find(e.kernels, name, &KernelEstimate::name);
  if (found == e.kernels.end()) throw InternalError("no kernel " + name);
  return *found;
}

TEST(ChainKernel, EveryColumnHasOneThreadBlock) {
  for (const char* name : {"h200", "rtx4090", "a100-sxm-80gb"}) {
    const Gpu gpu = load_gpu(name);
    const Plan plan = planned(2, true, gpu);
    const Kernel& kernel = *test::find_kernel(plan, "gate_up");
    const ChainLayout layout = chain_layout(kernel, gpu).value();
    const std::int64_t columns = handed_over(kernel)->cols;
    EXPECT_LE(layout.blocks, gpu.sm_count);
    EXPECT_EQ(layout.columns % chained_piece, 0);
    EXPECT_EQ(layout.first_columns, 2 * layout.columns) << "gate and up";
    EXPECT_GE(layout.blocks * layout.columns, columns);
    EXPECT_LT((layout.blocks - 1) * layout.columns, columns) << "no block is idle";
    EXPECT_FALSE(chain_layout(*test::find_kernel(plan, "oproj"), gpu).has_value());
  }
}

TEST(ChainKernel, MovesNoLessThanTheLoopNestsAllow) {
  const Gpu gpu = load_gpu("h200");
  for (const std::int64_t batch : {1, 2, 8}) {
    const PlanEstimate e = simulate(planned(batch, true, gpu), gpu, Fidelity::hierarchy);
    const KernelEstimate& k = kernel_of(e, "gate_up");
    const ChainShape shape{.m = batch, .f = 2 * 5632, .k = 2048, .n = 2048, .narrowed = 2};
    const Bytes least = least_traffic(shape, gpu.l2_capacity);
    // x and y may stay in L2; both weights may not, since each layer has its own.
    const Bytes weights((2 * 5632 * 2048 + 2048 * 5632) * 2);
    EXPECT_GE(k.hbm_read, weights);
    EXPECT_LE(least, k.hbm_read + k.hbm_write + Bytes(batch * (2048 + 2048) * 2));
    EXPECT_GT(k.time, weights / gpu.hbm_bandwidth);
  }
}

TEST(ChainKernel, SavesALaunchAndTakesLongerWithEveryRow) {
  const Gpu gpu = load_gpu("h200");
  double before = 0;
  for (const std::int64_t batch : {1, 2, 4, 8}) {
    const PlanEstimate chained = simulate(planned(batch, true, gpu), gpu, Fidelity::hierarchy);
    const PlanEstimate apart = simulate(planned(batch, false, gpu), gpu, Fidelity::hierarchy);
    EXPECT_EQ(chained.launches + 1, apart.launches);
    const double time = kernel_of(chained, "gate_up").time.value();
    EXPECT_GT(time, before);
    before = time;
  }
}

// No constant was fitted to such a kernel: its band is of chains that were measured, which all
// lost.
TEST(ChainKernel, HasAWideBand) {
  const Gpu gpu = load_gpu("h200");
  const Workload work = test::decode(1, 1, 2048);
  const PlanEstimate chained = simulate(planned(1, true, gpu), gpu, Fidelity::hierarchy);
  const PlanEstimate apart = simulate(planned(1, false, gpu), gpu, Fidelity::hierarchy);
  EXPECT_EQ(kernel_of(chained, "gate_up").judged_apart, "chain");
  const Sureness sure(gpu, work);
  const Band wide = *sure.time(chained), usual = *sure.time(apart);
  EXPECT_GT(wide.high - wide.low, usual.high - usual.low);
}

}  // namespace
}  // namespace fuseline
