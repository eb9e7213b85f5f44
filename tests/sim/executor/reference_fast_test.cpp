// The fast fp64 reference against the operators' own loops, for every shipped block: attention that
// is streamed head by head has their caps, biases and widths.
#include "sim/executor/reference_fast.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "sim/executor/inputs.h"
#include "tests/sim/executor/executor_support.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline::executor {
namespace {

// Both compute in fp64 and differ in the order of their sums alone: 1e-9 is far above what some
// thousand additions of rounded doubles lose, and far below what bf16 hides.
constexpr double kOrderOfSums = 1e-9;

class FastReference : public testing::TestWithParam<std::string> {};

TEST_P(FastReference, IsTheOperatorsOwn) {
  int compared = 0;
  for (const Workload& work : {test::forward(2, 19), test::decode(3, 1, 23), test::train(2, 11)}) {
    Graph block;
    try {
      block = build_block(test::sized(GetParam(), true), work);
    } catch (const InputError&) {
      continue;  // a phase that the block does not have
    }
    const Inputs inputs = random_storage(block, 7, {});
    const TensorValues fast = fast_reference(block, inputs, {});
    NamedTensors given;
    for (const auto& [name, storage] : inputs) given[name] = to_doubles(*storage);
    const TensorValues own = run_reference(block, given);
    for (const Op& op : block.ops())
      for (const Operand& o : op.writes) {
        if (!fast.has(o.tensor)) continue;
        const std::string& name = block.tensor(o.tensor).name;
        EXPECT_LT(relative_l2(fast.at(name), own.at(name)), kOrderOfSums)
            << name << ", " << name_of(work.phase);
        ++compared;
      }
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(All, FastReference, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fuseline::executor
