// Weights, activations and caches in every number format: each shipped block under every policy is
// legal, predicted at or above its limits, computed with equal bytes and the results of fp64. Some
// 5,000 plans: a test of the optimised build.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/custom_fusion.h"
#include "sim/executor/verification.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

// Every format; and groups that are shorter than the rows here and do not divide them.
std::vector<std::string> formats() {
  std::vector<std::string> names = weight_format_names();
  for (const char* grouped : {"int4:16", "int4-zero:10", "int8:14", "int4:0"})
    names.emplace_back(grouped);
  return names;
}

Plan planned(const std::string& policy, const Graph& block, const std::string& name) {
  const Target target = plan_target(executor::executor_gpu());
  return test::is_end(name) ? make_end_plan(policy, block, target)
                            : make_plan(policy, block, target);
}

class NumberFormats : public testing::TestWithParam<std::string> {};

TEST_P(NumberFormats, OfEveryShippedBlockAreProvedUnderEveryPolicy) {
  for (const bool other : {false, true}) {
    const ModelConfig c = test::sized(GetParam(), other);
    for (const std::string& name : formats()) {
      for (Workload work : {test::forward(2, 19), test::decode(3, 1, 23)}) {
        if (work.phase == Phase::decode && test::refuses_decode(GetParam())) continue;
        work.formats.weights = parse_stored_weight(name, "", "");
        const Graph block = build_block(c, work);
        const test::Proof proof(block);
        for (const PolicyInfo& p : policies())
          proof.of(planned(p.name, block, GetParam()),
                   p.name + ", " + name + ", " + name_of(work.phase));
      }
    }
  }
}

// Products of codes by codes.
TEST_P(NumberFormats, OfActivationsAreProvedUnderEveryPolicy) {
  for (const std::string& name : activation_format_names()) {
    for (const bool other : {false, true}) {
      const bool groups = name == "fp8-block";
      if (groups && other) continue;
      const ModelConfig c =
          groups ? test::sized_in_groups(GetParam()) : test::sized(GetParam(), other);
      for (Workload work : {test::forward(2, 19), test::decode(3, 1, 23)}) {
        if (work.phase == Phase::decode && test::refuses_decode(GetParam())) continue;
        work.formats.activations = parse_stored_activation(name, "", "");
        work.formats.weights = parse_stored_weight(weights_for(work.formats.activations), "", "");
        const Graph block = build_block(c, work);
        const test::Proof proof(block);
        for (const PolicyInfo& p : policies())
          proof.of(planned(p.name, block, GetParam()),
                   p.name + ", activations " + name + ", " + name_of(work.phase));
      }
    }
  }
}

// Beside the unfused plan's errors. In fp32 next to no number becomes another code, so that a
// kernel that is wrong shows though the codes are coarse; in bf16 codes differ between plans.
TEST_P(NumberFormats, OfActivationsAreVerified) {
  if (test::is_end(GetParam())) return;  // what stands around the layers is not verified alone
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  for (const std::string& name : activation_format_names()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      Workload work = test::forward(2, 19);
      work.dtype = dtype;
      work.formats.activations = parse_stored_activation(name, "", "");
      work.formats.weights = parse_stored_weight(weights_for(work.formats.activations), "", "");
      const executor::Verification done = executor::verify(test::sized_in_groups(GetParam()), work,
                                                           names, executor::executor_gpu(), {});
      for (const executor::VerifiedPolicy& policy : done.policies) {
        EXPECT_TRUE(policy.bytes_equal()) << policy.policy << ", " << name;
        EXPECT_FALSE(policy.not_finite) << policy.policy << ", " << name;
        for (const executor::ComparedTensor& t : policy.tensors)
          EXPECT_EQ(t.problem, "") << policy.policy << ", " << name << ": " << t.name;
      }
      EXPECT_TRUE(done.passed()) << name << ", " << name_of(dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NumberFormats, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

// Caches. ---------------------------------------------------------------------------------------

Workload decode_in(const std::string& name, std::int64_t batch, std::int64_t seq,
                   std::int64_t context) {
  Workload work = test::decode(batch, seq, context);
  work.formats.cache = parse_stored_cache(name, "", "");
  return work;
}

bool stores_codes(const Graph& block) {
  return std::ranges::any_of(block.tensors(), [](const Tensor& t) {
    return t.role == Role::cache && size_of(t.dtype).bits() <= 8;
  });
}

// Blocks without attention, or with attention that keeps nothing.
bool keeps_no_keys(const std::string& block) {
  return test::is_end(block) || block == "mamba" || block == "mamba2";
}

std::vector<std::string> blocks_that_decode() {
  std::vector<std::string> names = block_names();
  std::erase_if(names, test::refuses_decode);
  return names;
}

class CacheFormats : public testing::TestWithParam<std::string> {};

// One new token a sequence, and several behind a context; with and without a window.
TEST_P(CacheFormats, OfEveryShippedBlockAreProvedUnderEveryPolicy) {
  for (const bool other : {false, true}) {
    const ModelConfig c = test::sized(GetParam(), other);
    for (const std::string& name : cache_format_names()) {
      for (const Workload& work : {decode_in(name, 3, 1, 23), decode_in(name, 2, 5, 19)}) {
        const Graph block = build_block(c, work);
        const bool scan_only = GetParam() == "jamba" && !other;  // its layer without attention
        EXPECT_EQ(stores_codes(block), !keeps_no_keys(GetParam()) && !scan_only) << GetParam();
        const test::Proof proof(block);
        for (const PolicyInfo& p : policies())
          proof.of(planned(p.name, block, GetParam()), p.name + ", " + name);
      }
    }
  }
}

// Beside the unfused plan's errors, which show kernels that are wrong by less than the format is.
TEST_P(CacheFormats, OfEveryShippedBlockAreVerified) {
  if (test::is_end(GetParam())) return;  // what stands around the layers keeps no cache
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  for (const std::string& name : cache_format_names()) {
    const Workload work = decode_in(name, 2, 3, 70);
    const executor::Verification done =
        executor::verify(test::sized(GetParam(), false), work, names, executor::executor_gpu(), {});
    for (const executor::VerifiedPolicy& policy : done.policies) {
      EXPECT_TRUE(policy.bytes_equal()) << policy.policy << ", " << name;
      for (const executor::ComparedTensor& t : policy.tensors)
        EXPECT_EQ(t.problem, "") << policy.policy << ", " << name << ": " << t.name;
    }
    EXPECT_TRUE(done.passed()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CacheFormats, testing::ValuesIn(blocks_that_decode()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fuseline
