// Every block of scenarios/blocks once, under the policy that fuses nothing and the one that fuses
// most, so that the sanitizers see the code of every operator and of every primitive. All policies
// at more sizes are in shipped_blocks_test.cpp, which takes an optimised program.
#include <gtest/gtest.h>

#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/custom_fusion.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

class BlocksUnderSanitizers : public testing::TestWithParam<std::string> {};

TEST_P(BlocksUnderSanitizers, AreProved) {
  const ModelConfig sizes = test::sized(GetParam(), false);
  const Target target = plan_target(executor::executor_gpu());
  for (const Workload& work : {test::forward(2, 19), test::decode(3, 1, 23), test::train(2, 11)}) {
    if (work.phase == Phase::decode && test::refuses_decode(GetParam())) continue;
    const Graph block = build_block(sizes, work);
    const test::Proof proof(block);
    for (const std::string policy : {"eager", "coda"})
      proof.of(test::is_end(GetParam()) ? make_end_plan(policy, block, target)
                                        : make_plan(policy, block, target),
               policy + ", " + name_of(work.phase));
  }
}

INSTANTIATE_TEST_SUITE_P(All, BlocksUnderSanitizers, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fuseline
