#include "sim/judge/audit/one_workload.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/block/whole_model.h"
#include "sim/gpu/plan_target.h"
#include "sim/memory/memory_fit.h"
#include "tests/sim/sim_support.h"

namespace fuseline::audit {
namespace {

// The RTX 4090's thread blocks have less shared memory than those of the other two.
TEST(OneWorkload, PredictsWhatPlansOfTheirOwnForEveryGpuGive) {
  const ModelConfig config = load_model("tinyllama");
  for (const Workload& work : {forward(1, 130), decode(2, 1, 700)}) {
    OneWorkload one(config, work);
    for (const char* const policy : {"eager", "coda", "eager"}) {
      for (const char* const name : {"h100-sxm", "rtx4090", "h200"}) {
        SCOPED_TRACE(std::string(policy) + " on " + name);
        const Gpu gpu = load_gpu(name);
        const Plan plan = make_plan(policy, config, work, plan_target(gpu));
        const PlanEstimate block = simulate(plan, gpu, Fidelity::hierarchy);
        const Predicted got = one.predict(policy, gpu, true);
        EXPECT_EQ(got.block.time, block.time);
        EXPECT_EQ(got.block.hbm_read, block.hbm_read);
        EXPECT_EQ(got.block.launches, block.launches);
        EXPECT_EQ(got.kernels.size(), block.kernels.size());
        EXPECT_EQ(got.model.time, whole_model(block, config, work, gpu).time);
        EXPECT_EQ(got.activations, activations_at_once(plan, config, work));
        EXPECT_GT(got.attention.all, Flops());
      }
    }
  }
}

}  // namespace
}  // namespace fuseline::audit
