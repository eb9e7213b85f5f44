// The judgement: sound plans pass in every storage type, every fault fails and names a tensor.
#include "sim/executor/verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/formats/stored_weight.h"
#include "model/policy.h"
#include "sim/executor/memory_need.h"
#include "tests/model/plan_support.h"
#include "tests/model/small_experts.h"
#include "tests/sim/executor/executor_support.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline::executor {
namespace {

ModelConfig middling_llama() {
  ModelConfig c = test::tiny_llama();
  c.D = 200;
  c.F = 270;
  c.H = 6;
  c.Hkv = 2;
  c.d = 32;
  return c;
}

ModelConfig middling_gpt() {
  ModelConfig c = test::tiny_gpt();
  c.D = 180;
  c.F = 300;
  c.H = c.Hkv = 5;
  c.d = 36;
  return c;
}

std::string failures(const Verification& v) {
  std::string text;
  for (const VerifiedPolicy& p : v.policies) {
    for (const ComparedTensor& t : p.tensors)
      if (!t.problem.empty()) text += p.policy + " " + t.name + ": " + t.problem + "\n";
    for (const CountedKernel& k : p.kernels)
      for (const std::string& name : k.differing) text += p.policy + " bytes of " + name + "\n";
    if (p.launches != p.launches_predicted) text += p.policy + " launches\n";
  }
  return text;
}

// Scores of a diffusion model grow with its conditioning. With outliers there, a softmax took one
// key, and plans differed by up to 5 times where two keys were nearly equal.
TEST(Verification, BlocksThatAreConditionedPass) {
  for (const Dtype type : {Dtype::bf16, Dtype::fp16}) {
    Workload work = test::train(2, 37);
    work.dtype = type;
    const Verification v = verify(test::sized_in_groups("mmdit"), work,
                                  {"composed", "per-operator", "coda"}, executor_gpu(), {});
    EXPECT_TRUE(v.passed()) << name_of(type) << '\n' << failures(v);
  }
  for (const char* weights : {"int8", "int4-zero"}) {
    Workload work = test::forward(2, 37);
    work.formats.weights = parse_stored_weight(weights, "", "");
    const Verification v = verify(test::sized_in_groups("mmdit"), work,
                                  {"composed", "per-operator", "coda"}, executor_gpu(), {});
    EXPECT_TRUE(v.passed()) << weights << '\n' << failures(v);
  }
}

// Capped scores, a bias of the scores, and heads of V that are narrower than those of K.
TEST(Verification, AttentionOfOpenBlocksPasses) {
  for (const char* block : {"gemma2", "t5_decoder", "mla"}) {
    const Verification v =
        verify(test::sized(block, true), test::forward(2, 19), {"eager"}, executor_gpu(), {});
    EXPECT_TRUE(v.passed()) << block << '\n' << failures(v);
  }
}

// Rotated columns in adjacent pairs beside others, in every head: compared in their order.
TEST(Verification, HeadsJoinedOfTwoPartsPass) {
  for (const bool other : {false, true}) {
    for (const Workload& work : {test::forward(2, 19), test::decode(2, 3, 40)}) {
      const Verification v =
          verify(test::sized("mla", other), work, {"tensorrt-llm", "coda"}, executor_gpu(), {});
      EXPECT_TRUE(v.passed()) << name_of(work.phase) << '\n' << failures(v);
    }
  }
}

TEST(Verification, SoundPlansPassInEveryStorageType) {
  for (const ModelConfig& config : {middling_llama(), middling_gpt()}) {
    for (Workload work : {test::forward(2, 40), test::decode(2, 1, 170), test::decode(1, 3, 60)}) {
      for (const Dtype type : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
        work.dtype = type;
        const Verification v = verify(config, work, all_policies(), executor_gpu(), {});
        EXPECT_TRUE(v.passed()) << config.name << ' ' << name_of(work.phase) << ' ' << name_of(type)
                                << '\n'
                                << failures(v);
        for (const VerifiedPolicy& p : v.policies) {
          EXPECT_TRUE(std::any_of(p.tensors.begin(), p.tensors.end(), [](const ComparedTensor& t) {
            return t.name == "y" && t.output;
          })) << p.policy;
        }
      }
    }
  }
}

TEST(Verification, SoundTrainingPlansPassInEveryStorageType) {
  for (const ModelConfig& config :
       {middling_llama(), middling_gpt(), test::small_experts(), test::small_latent_experts()}) {
    Workload work = test::train(1, 70);
    for (const Dtype type : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
      work.dtype = type;
      const Verification v = verify(config, work, test::training_policies(), executor_gpu(), {});
      EXPECT_TRUE(v.passed()) << config.name << ' ' << name_of(type) << '\n' << failures(v);
      // Every output and every weight's gradient of the block is judged, under every policy.
      const Graph block = build_block(config, work);
      for (const VerifiedPolicy& p : v.policies)
        for (const Tensor& t : block.tensors())
          EXPECT_TRUE(t.role != Role::output ||
                      std::ranges::find(p.tensors, t.name, &ComparedTensor::name) !=
                          p.tensors.end())
              << p.policy << ' ' << t.name;
    }
  }
}

// A gradient turns rotated values back, which a table of cos and sin for halves of the heads would
// not do for neighbours; behind a bias it must.
TEST(Verification, RotationsOfAdjacentPairsAreTurnedBackBehindABias) {
  Workload work = test::train(2, 19);
  work.dtype = Dtype::fp32;
  const Verification v =
      verify(test::sized("glm4", true), work, {"unfused", "coda"}, executor_gpu(), {});
  EXPECT_TRUE(v.passed()) << failures(v);
}

// Rounding gives a few of ReLU's operands the other sign, whose gradients are then all wrong. More
// of them are a fault.
TEST(Verification, SignsThatRoundingTurnsAreNoFaultOfReluButOthersAre) {
  ModelConfig config = test::sized("t5_encoder", false);
  config.D = 136;
  config.F = 200;
  config.d = 24;
  Workload work = test::train(2, 37);
  work.dtype = Dtype::fp16;
  VerifyOptions options;
  bool turned = false;
  for (options.seed = 1; options.seed <= 6; ++options.seed) {
    const Verification v =
        verify(config, work, {"unfused", "xla", "coda"}, executor_gpu(), options);
    EXPECT_TRUE(v.passed()) << options.seed << '\n' << failures(v);
    for (const ComparedTensor& t : v.policies.at(0).tensors)
      turned = turned || (t.name == "dup" && t.error.relative_l2 > 0.02);
  }
  EXPECT_TRUE(turned) << "no seed shows what the test is about";
  options.fault = FaultKind::stale_tile;
  EXPECT_FALSE(verify(config, work, {"coda"}, executor_gpu(), options).passed());
}

// The products before a mask are not defined where it hides pairs, and not judged there.
TEST(Verification, ScoresThatAMaskHidesAreNotJudged) {
  for (const char* block : {"gemma2", "mla"}) {
    const Verification v =
        verify(test::sized(block, true), test::train(2, 19), {"unfused"}, executor_gpu(), {});
    EXPECT_TRUE(v.passed()) << block << '\n' << failures(v);
    for (const ComparedTensor& t : v.policies.at(0).tensors) {
      EXPECT_NE(t.name, "scores") << block;
      EXPECT_NE(t.name, "dprobs") << block;
    }
  }
}

// Heads that are taken apart come in the order of the heads that they are parts of.
TEST(Verification, GradientsOfJoinedHeadsAreComparedInTheBlocksOrder) {
  const Verification v =
      verify(test::small_latent_experts(), test::train(1, 40), {"coda"}, executor_gpu(), {});
  EXPECT_TRUE(v.passed()) << failures(v);
  for (const char* name : {"dqs", "dkeys", "dq_rot", "dk_rot", "dq", "dkva", "dgu", "dlogits"})
    EXPECT_NE(std::ranges::find(v.policies.at(0).tensors, name, &ComparedTensor::name),
              v.policies.at(0).tensors.end())
        << name;
}

TEST(Verification, GradientsOfActivationsAreComparedInTheBlocksOrder) {
  const Verification v = verify(middling_llama(), test::train(1, 40), {"coda"}, executor_gpu(), {});
  for (const char* name : {"dgu", "dqkv", "dk_rot", "dh", "dattn", "gu", "q_rot"}) {
    const auto found = std::ranges::find(v.policies[0].tensors, name, &ComparedTensor::name);
    ASSERT_NE(found, v.policies[0].tensors.end()) << name;
    EXPECT_LT(found->error.relative_l2, 0.02) << name;
  }
  // coda's xn2 is h·γ, not yet divided by its norm: another quantity of the same name.
  EXPECT_EQ(std::ranges::find(v.policies[0].tensors, "xn2", &ComparedTensor::name),
            v.policies[0].tensors.end());
}

TEST(Verification, ASingleTokenWhoseQueryHasNoGradientPasses) {
  const Verification v =
      verify(middling_llama(), test::train(1, 1), test::training_policies(), executor_gpu(), {});
  EXPECT_TRUE(v.passed()) << failures(v);
}

class EveryFault : public ::testing::TestWithParam<FaultInfo> {};

TEST_P(EveryFault, FailsAndNamesATensor) {
  for (const char* policy : {"unfused", "eager", "composed", "coda", "whole-block"}) {
    for (const std::int64_t tokens : {32, 150}) {
      VerifyOptions options;
      options.fault = GetParam().kind;
      const Workload work = GetParam().backward ? test::train(1, tokens) : test::forward(1, tokens);
      Verification v;
      try {
        v = verify(middling_llama(), work, {policy}, executor_gpu(), options);
      } catch (const InputError&) {
        continue;  // nothing in the plan to which it could happen
      }
      EXPECT_FALSE(v.passed()) << policy << ' ' << tokens;
      EXPECT_TRUE(std::any_of(v.policies[0].tensors.begin(), v.policies[0].tensors.end(),
                              [](const ComparedTensor& t) { return !t.problem.empty(); }))
          << policy << ' ' << tokens;
    }
  }
}

TEST_P(EveryFault, CanHappenToCoda) {
  if (!GetParam().backward) {
    const Plan plan = make_plan("coda", middling_llama(), test::forward(1, 32));
    EXPECT_TRUE(find_fault(plan, GetParam().kind).has_value());
  }
  const Plan plan = make_plan("coda", middling_llama(), test::train(1, 32));
  EXPECT_TRUE(find_fault(plan, GetParam().kind).has_value());
}

TEST_P(EveryFault, FailsInTrainingAndNamesATensor) {
  for (const char* policy : {"unfused", "torch-compile", "coda"}) {
    VerifyOptions options;
    options.fault = GetParam().kind;
    Verification v;
    try {
      v = verify(middling_llama(), test::train(1, 40), {policy}, executor_gpu(), options);
    } catch (const InputError&) {
      EXPECT_NE(std::string(policy), "coda");
      continue;
    }
    EXPECT_FALSE(v.passed()) << policy;
    EXPECT_TRUE(std::ranges::any_of(v.policies[0].tensors, [](const ComparedTensor& t) {
      return !t.problem.empty();
    })) << policy;
  }
}

INSTANTIATE_TEST_SUITE_P(Verification, EveryFault, ::testing::ValuesIn(faults()),
                         [](const auto& fault) {
                           std::string name = fault.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Verification, AFaultWithoutAPlaceIsRefused) {
  VerifyOptions options;
  options.fault = FaultKind::wrong_rotation_sign;  // GPT-like blocks rotate nothing
  try {
    verify(middling_gpt(), test::forward(1, 8), {"eager"}, executor_gpu(), options);
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("wrong-rotation-sign"), std::string::npos);
  }
}

TEST(Verification, AFaultOfTheBackwardPassNeedsOne) {
  VerifyOptions options;
  options.fault = FaultKind::stale_delta;
  try {
    verify(middling_llama(), test::forward(1, 8), {"coda"}, executor_gpu(), options);
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("--phase train"), std::string::npos) << error.what();
  }
}

TEST(Verification, AnUnknownFaultListsAllAndTheNearest) {
  try {
    parse_fault("swaped-pair");
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().nearest, "swapped-pair");
    for (const FaultInfo& f : faults())
      EXPECT_NE(error.problem().allowed.find(f.name), std::string::npos) << f.name;
  }
}

TEST(Verification, TooLargeABlockIsRefusedBeforeAnythingIsAllocated) {
  VerifyOptions options;
  options.memory_limit = Bytes(1'000'000'000);
  try {
    verify(test::llama2_7b(), test::forward(1, 2048), {"coda"}, executor_gpu(), options);
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("more than the 1.0 GB"), std::string::npos)
        << error.what();
  }
  options.memory_limit.reset();
  EXPECT_THROW(
      verify(test::llama2_7b(), test::forward(1 << 10, 1 << 14), {"coda"}, executor_gpu(), options),
      InputError);
}

// The reference holds the gradients of the experts' matrices as doubles, and of the matrices a
// panel at a time.
TEST(Verification, CountsTheMemoryOfExperts) {
  const auto need = [](std::int64_t experts) {
    ModelConfig c = test::small_experts();
    c.values["E"] = experts;
    const Graph block = build_block(c, test::train(1, 20));
    return memory_need(block, {make_plan("unfused", block)}, 1).value();
  };
  const ModelConfig c = test::small_experts();
  const std::int64_t of_one = 3 * c.D * c.F;
  EXPECT_GE(need(9) - need(5), 4 * of_one * (2 + 8));
  EXPECT_LT(need(9) - need(5), 4 * of_one * (8 + 2 + 8));
}

TEST(Verification, StopsWhenAsked) {
  const std::atomic<bool> stop = true;
  VerifyOptions options;
  options.workers.stop = &stop;
  EXPECT_THROW(verify(middling_llama(), test::forward(1, 8), {"coda"}, executor_gpu(), options),
               Cancelled);
}

TEST(Verification, Fp16ThatOverflowsIsNotFinite) {
  // Given activations that grow past 65504: weights as they are, but a norm without its mean.
  TensorError e;
  Storage got(Dtype::fp16, 2, 3);
  const std::vector<float> values{1, 2, 70000, 4, 5, 6};
  got.write(0, 0, 3, values.data());
  got.write(1, 0, 3, values.data() + 3);
  e = compare(got, {1, 2, 70000, 4, 5, 6}, 0, 3);
  ASSERT_TRUE(e.not_finite.has_value());
  EXPECT_EQ(*e.not_finite, (std::pair<std::int64_t, std::int64_t>(0, 2)));
}

TEST(Verification, NamesTheFirstTensorThatOverflows) {
  // Given a residual stream of which fp16 holds x, but not x times the norm's weight,
  VerifyOptions options;
  options.inputs.scale = 800;
  Workload work = test::train(1, 150);
  work.dtype = Dtype::fp16;
  const Verification v =
      verify(middling_llama(), work, {"unfused", "coda"}, executor_gpu(), options);
  // then the plan that normalises first passes,
  EXPECT_TRUE(v.policies[0].passed()) << failures(v);
  EXPECT_FALSE(v.policies[0].not_finite.has_value());
  // and the one that normalises after the GEMM fails where it keeps the product.
  EXPECT_FALSE(v.policies[1].passed());
  ASSERT_TRUE(v.policies[1].not_finite.has_value());
  EXPECT_EQ(v.policies[1].not_finite->tensor, "x_weighted");
  EXPECT_TRUE(std::isinf(v.policies[1].not_finite->value));
  // bf16 has room for it.
  work.dtype = Dtype::bf16;
  EXPECT_TRUE(verify(middling_llama(), work, {"coda"}, executor_gpu(), options).passed());
}

TEST(Verification, InputsThatTheStorageTypeCannotHoldAreRefused) {
  VerifyOptions options;
  options.inputs.scale = 20000;
  Workload work = test::forward(1, 8);
  work.dtype = Dtype::fp16;
  try {
    verify(middling_llama(), work, {"coda"}, executor_gpu(), options);
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("x[0, "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("fp16"), std::string::npos) << error.what();
  }
}

TEST(TensorErrors, AFaultInOneTileShowsInTheWorstTile) {
  Storage got(Dtype::fp32, 512, 512);
  std::vector<double> want(512 * 512, 1.0);
  const std::vector<float> ones(512, 1.0F);
  for (std::int64_t r = 0; r < 512; ++r) got.write(r, 0, 512, ones.data());
  want[0] = 2.0;  // not all equal
  const float two = 2.0F;
  got.write(0, 0, 1, &two);
  EXPECT_EQ(compare(got, want, 0, 512).worst_tile, 0.0);
  const std::vector<float> zeros(128, 0.0F);
  for (std::int64_t r = 256; r < 384; ++r) got.write(r, 128, 128, zeros.data());
  const TensorError e = compare(got, want, 0, 512);
  EXPECT_NEAR(e.relative_l2, 0.25, 1e-3);  // one tile of sixteen
  EXPECT_NEAR(e.worst_tile, 1.0, 1e-3);
  EXPECT_EQ(e.largest, 1.0);
}

TEST(TensorErrors, NarrowTilesAreNotJudgedApart) {
  // Given one row of 1,000 numbers, of which the last 100 are off by a tenth of a percent each,
  Storage got(Dtype::fp32, 1, 1000);
  std::vector<double> want(1000, 1.0);
  want[0] = 30.0;
  std::vector<float> values(want.begin(), want.end());
  for (std::size_t i = 900; i < 1000; ++i) values[i] = 1.001F;
  got.write(0, 0, 1000, values.data());
  const TensorError e = compare(got, want, 0, 1000);
  EXPECT_EQ(e.worst_tile, e.relative_l2);
  // and one of which carries nearly half of the norm: 1899² / (999 + 30⁴).
  EXPECT_NEAR(e.numbers, 1899.0 * 1899.0 / (999.0 + 810000.0), 1e-9);
  EXPECT_GT(worst_ratio(e.numbers), 2.5);
  EXPECT_EQ(worst_ratio(64), kWorstRatio);
}

TEST(TensorErrors, AllEqualIsWrongWhereOthersAreWanted) {
  Storage got(Dtype::bf16, 3, 3);
  EXPECT_TRUE(compare(got, std::vector<double>(9, 1e-9), 0, 3).all_equal);
  const std::vector<float> ones(3, 1.0F);
  for (std::int64_t r = 0; r < 3; ++r) got.write(r, 0, 3, ones.data());
  std::vector<double> gates(9, 1.0);  // of one expert a token
  EXPECT_FALSE(compare(got, gates, 0, 3).all_equal);
  gates[4] = 1.01;
  EXPECT_TRUE(compare(got, gates, 0, 3).all_equal);
}

}  // namespace
}  // namespace fuseline::executor
