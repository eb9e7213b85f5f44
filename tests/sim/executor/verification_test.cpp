// The judgement: sound plans pass in every storage type, every fault fails and names a tensor.
#include "sim/executor/verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "model/error.h"
#include "tests/model/plan_support.h"
#include "tests/sim/executor/executor_support.h"

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

class EveryFault : public ::testing::TestWithParam<FaultInfo> {};

TEST_P(EveryFault, FailsAndNamesATensor) {
  for (const char* policy : {"unfused", "eager", "composed", "coda", "whole-block"}) {
    for (const std::int64_t tokens : {32, 150}) {
      VerifyOptions options;
      options.fault = GetParam().kind;
      const Workload work = test::forward(1, tokens);
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
  const Plan plan = make_plan("coda", middling_llama(), test::forward(1, 32));
  EXPECT_TRUE(find_fault(plan, GetParam().kind).has_value());
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

TEST(TensorErrors, AllEqualIsNeverRight) {
  const Storage got(Dtype::bf16, 3, 3);
  EXPECT_TRUE(compare(got, std::vector<double>(9, 1e-9), 0, 3).all_equal);
}

}  // namespace
}  // namespace fuseline::executor
