// Every block of scenarios/blocks, from its text at small odd sizes: legal, predicted at or above
// its limits, computed with equal bytes and the results of fp64, under every policy; in training
// too, where its operators have gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/custom_fusion.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

Target executor_target() { return plan_target(executor::executor_gpu()); }

Plan plan_is_made(const std::string& policy, const Graph& block, const std::string& name) {
  return test::is_end(name) ? make_end_plan(policy, block, executor_target())
                            : make_plan(policy, block, executor_target());
}

class ShippedBlocks : public testing::TestWithParam<std::string> {};

TEST_P(ShippedBlocks, AreProvedUnderEveryPolicy) {
  for (const bool other : {false, true}) {
    const ModelConfig c = test::sized(GetParam(), other);
    for (const Workload& work : {test::forward(2, 19), test::decode(3, 1, 23)}) {
      if (work.phase == Phase::decode && test::refuses_decode(GetParam())) {
        EXPECT_THROW(build_block(c, work), InputError);
        continue;
      }
      const Graph block = build_block(c, work);
      const test::Proof proof(block);
      for (const PolicyInfo& p : policies())
        proof.of(plan_is_made(p.name, block, GetParam()),
                 p.name + (other ? ", other sizes, " : ", ") + name_of(work.phase));
    }
  }
}

TEST_P(ShippedBlocks, AreTrained) {
  for (const bool other : {false, true}) {
    const ModelConfig c = test::sized(GetParam(), other);
    const Graph block = build_block(c, test::train(2, 11));
    const test::Proof proof(block);
    for (const PolicyInfo& p : policies())
      if (p.trains)
        proof.of(plan_is_made(p.name, block, GetParam()), p.name + (other ? ", other sizes" : ""));
  }
}

// Several tiles of columns, and beside the widest loop a sum over rows of one that ends earlier.
TEST(Mamba2, WiderThanATileIsTrained) {
  ModelConfig c = test::sized("mamba2", false);
  c.D = 160;
  const Graph block = build_block(c, test::train(2, 11));
  const test::Proof proof(block);
  for (const PolicyInfo& p : policies())
    if (p.trains) proof.of(plan_is_made(p.name, block, "mamba2"), p.name);
}

// Jamba's layers are of Mamba or of attention, each before an MLP where there are no experts.
TEST(Jamba, LayersOfMambaAndOfAttentionAreTrained) {
  for (const bool attends : {false, true}) {
    ModelConfig c = test::sized("jamba", false);
    c.values["attends"] = attends;
    c.values["E"] = std::int64_t{0};
    const Graph block = build_block(c, test::train(2, 11));
    const test::Proof proof(block);
    for (const PolicyInfo& p : policies())
      if (p.trains)
        proof.of(plan_is_made(p.name, block, "jamba"),
                 p.name + (attends ? ", attention" : ", Mamba"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedBlocks, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fuseline
