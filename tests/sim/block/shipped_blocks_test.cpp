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
#include "tests/model/tiny_models.h"
#include "tests/sim/plan_proof.h"

namespace fuseline {
namespace {

// Sizes for every letter that a shipped block has; two sets, so that a swapped letter shows.
ModelConfig sized(const std::string& block, bool other) {
  ModelConfig c = test::tiny_llama();
  c.blocks = {{.block = block}};
  c.D = other ? 36 : 24;
  c.F = other ? 28 : 40;
  c.H = other ? 2 : 4;
  c.Hkv = other ? 1 : 2;
  c.d = other ? 12 : 8;
  c.V = 31;
  c.max_positions = 64;
  c.norm_eps = 1e-5;
  c.sliding_window = other ? 5 : 0;
  c.qkv_bias = c.out_bias = c.mlp_bias = other;
  c.values = {{"text_tokens", std::int64_t{3}},
              {"qk_norm", other},
              {"biases", other},
              {"exact_gelu", other},
              {"E", std::int64_t{other && block != "moe" ? 0 : 5}},
              {"k", std::int64_t{other ? 3 : 2}},
              {"all_scores", other},
              {"sigmoid_scores", !other},
              {"factor", other ? 1.0 : 2.5},
              {"N", std::int64_t{other ? 5 : 4}},
              {"P", std::int64_t{other ? 12 : 8}},
              {"groups", std::int64_t{other ? 2 : 1}},
              {"rank", std::int64_t{3}},
              {"chunk", std::int64_t{8}},
              {"attends", other},
              {"dn", std::int64_t{other ? 6 : 10}},
              {"dr", std::int64_t{4}},
              {"dv", std::int64_t{other ? 10 : 6}},
              {"rkv", std::int64_t{14}},
              {"rq", std::int64_t{other ? 18 : 0}},
              {"shared", std::int64_t{2}},
              {"source_tokens", std::int64_t{7}}};
  if (other) c.values["adjacent_pairs"] = true;
  if (other) c.values["softcap"] = 20.0;
  if (other) c.values["rotated"] = std::int64_t{8};
  return c;
}

Target executor_target() { return plan_target(executor::executor_gpu()); }

// What stands around the layers is planned without what a layer before it would leave.
Plan planned(const std::string& policy, const Graph& block, const std::string& name) {
  const bool is_end = name.starts_with("embed") || name.starts_with("head");
  return is_end ? make_end_plan(policy, block, executor_target())
                : make_plan(policy, block, executor_target());
}

// These see all tokens at once and keep no cache.
bool refuses_decode(const std::string& block) {
  return block == "bert" || block == "encoder" || block == "mmdit" || block == "t5_encoder";
}

// Operators without a gradient: modulation, experts, latent attention, scans, biased scores.
bool refuses_training(const std::string& block) {
  for (const char* without :
       {"mmdit", "moe", "mla", "mamba", "mamba2", "jamba", "t5_encoder", "t5_decoder"})
    if (block == without) return true;
  return false;
}

class ShippedBlocks : public testing::TestWithParam<std::string> {};

TEST_P(ShippedBlocks, AreProvedUnderEveryPolicy) {
  for (const bool other : {false, true}) {
    const ModelConfig c = sized(GetParam(), other);
    for (const Workload& work : {test::forward(2, 19), test::decode(3, 1, 23)}) {
      if (work.phase == Phase::decode && refuses_decode(GetParam())) {
        EXPECT_THROW(build_block(c, work), InputError);
        continue;
      }
      const Graph block = build_block(c, work);
      for (const PolicyInfo& p : policies())
        test::expect_proved(planned(p.name, block, GetParam()),
                            p.name + (other ? ", other sizes, " : ", ") + name_of(work.phase));
    }
  }
}

TEST_P(ShippedBlocks, AreTrained) {
  const ModelConfig c = sized(GetParam(), false);
  Graph block;
  try {
    block = build_block(c, test::train(2, 11));
  } catch (const InputError& error) {
    // Refused by name: what has no gradient is said.
    EXPECT_FALSE(std::string(error.what()).empty());
    EXPECT_TRUE(refuses_training(GetParam())) << error.what();
    return;
  }
  for (const PolicyInfo& p : policies())
    if (p.trains) test::expect_proved(planned(p.name, block, GetParam()), p.name);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedBlocks, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fuseline
