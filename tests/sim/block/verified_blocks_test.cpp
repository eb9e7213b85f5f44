// `fuseline verify` of the shipped blocks: every policy, number format and phase that the block has
// passes, its errors beside those of the unfused plan. What is refused is listed, with its reason.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block_text.h"
#include "model/cache_formats/stored_cache.h"
#include "model/formats/stored_weight.h"
#include "model/policy.h"
#include "sim/executor/verification.h"
#include "tests/sim/executor/executor_support.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline {
namespace {

// A block at small sizes: several tiles of 128 columns, and rows that no tile divides.
struct Verified {
  std::string name;
  ModelConfig config;
};

std::vector<Verified> verified_blocks() {
  std::vector<Verified> all;
  for (const std::string& block : block_names()) {
    if (test::is_end(block)) continue;  // what stands around the layers is not verified alone
    all.push_back({block, test::sized_in_groups(block)});
    if (block == "jamba" || block == "mla" || block == "mamba" || block == "mamba2") {
      ModelConfig dense = all.back().config;
      dense.values["E"] = std::int64_t{0};
      dense.values["attends"] = true;
      all.push_back({block + "_dense", dense});
    }
  }
  return all;
}

void expect_verified(const Verified& block, const Workload& work, const std::string& format) {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies())
    if (work.phase != Phase::train || p.trains) names.push_back(p.name);
  const std::string what = block.name + ", " + name_of(work.phase) + ", " + name_of(work.dtype) +
                           (format.empty() ? "" : ", " + format);
  const executor::Verification done =
      executor::verify(block.config, work, names, executor::executor_gpu(), {});
  for (const executor::VerifiedPolicy& policy : done.policies) {
    EXPECT_TRUE(policy.bytes_equal()) << what << ", " << policy.policy;
    EXPECT_FALSE(policy.not_finite) << what << ", " << policy.policy;
    for (const executor::ComparedTensor& t : policy.tensors)
      EXPECT_EQ(t.problem, "") << what << ", " << policy.policy << ": " << t.name;
    EXPECT_TRUE(policy.passed()) << what << ", " << policy.policy;
  }
}

std::vector<Workload> workloads(const std::string& block) {
  std::vector<Workload> all{test::forward(2, 37), test::train(2, 37)};
  if (!test::refuses_decode(block)) all.push_back(test::decode(3, 2, 70));
  return all;
}

class LongVerifiedBlocks : public testing::TestWithParam<Verified> {};

TEST_P(LongVerifiedBlocks, InEveryTypeAndPhase) {
  for (Workload work : workloads(GetParam().config.blocks.front().block)) {
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
      work.dtype = dtype;
      expect_verified(GetParam(), work, "");
    }
  }
}

TEST_P(LongVerifiedBlocks, InEveryFormatOfWeights) {
  for (Workload work : workloads(GetParam().config.blocks.front().block)) {
    if (work.phase == Phase::train) continue;
    for (const std::string& name : weight_format_names()) {
      work.formats.weights = parse_stored_weight(name, "", "");
      expect_verified(GetParam(), work, "weights " + name);
    }
  }
}

TEST_P(LongVerifiedBlocks, InEveryFormatOfActivations) {
  for (Workload work : workloads(GetParam().config.blocks.front().block)) {
    if (work.phase == Phase::train) continue;
    for (const std::string& name : activation_format_names()) {
      work.formats.activations = parse_stored_activation(name, "", "");
      work.formats.weights = parse_stored_weight(weights_for(work.formats.activations), "", "");
      expect_verified(GetParam(), work, "activations " + name);
    }
  }
}

TEST_P(LongVerifiedBlocks, InEveryFormatOfCaches) {
  for (Workload work : workloads(GetParam().config.blocks.front().block)) {
    if (work.phase != Phase::decode) continue;
    for (const std::string& name : cache_format_names()) {
      work.formats.cache = parse_stored_cache(name, "", "");
      expect_verified(GetParam(), work, "cache " + name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LongVerifiedBlocks, testing::ValuesIn(verified_blocks()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace fuseline
