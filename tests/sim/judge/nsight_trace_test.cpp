#include "sim/judge/nsight_trace.h"

#include <gtest/gtest.h>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/measured/measurement.h"

namespace fuseline {
namespace {

std::vector<NsightKernel> kernels(const std::string& letters) {
  std::vector<NsightKernel> out;
  for (const char c : letters) {
    out.emplace_back();
    out.back().kernel.kernel = std::string(1, c);
  }
  return out;
}

TEST(RepetitionLength, IsOfTheShortestListThatRepeatsExactly) {
  EXPECT_EQ(repetition_length(kernels("abcabcabc")), 3U);
  EXPECT_EQ(repetition_length(kernels("abab")), 2U);
  EXPECT_EQ(repetition_length(kernels("aaaa")), 1U);
  EXPECT_EQ(repetition_length(kernels("abcabcab")), 8U);  // the last is cut
  EXPECT_EQ(repetition_length(kernels("xabab")), 5U);     // something before
  EXPECT_EQ(repetition_length(kernels("a")), 1U);
}

TEST(RepetitionLength, LooksAtLaunchShapes) {
  std::vector<NsightKernel> list = kernels("abab");
  list[3].kernel.grid = "(2, 1, 1)";
  EXPECT_EQ(repetition_length(list), 4U);
}

class AssignSites : public ::testing::TestWithParam<const char*> {};

// The shipped traces name the step of every kernel of an eager block, as NVTX ranges told it.
TEST_P(AssignSites, FindsTheStepsThatWereRecorded) {
  const Measurements all =
      load_measurements(std::string(FUSELINE_SOURCE_DIR) + "/scenarios/measurements/" + GetParam());
  int judged = 0;
  for (const MeasuredTrace& trace : all.traces) {
    const bool recorded = std::all_of(trace.kernels.begin(), trace.kernels.end(),
                                      [](const MeasuredKernel& k) { return !k.site.empty(); });
    if (!recorded) continue;
    SCOPED_TRACE(trace.block.label());
    const Plan plan =
        make_plan(trace.block.execution, load_model(trace.block.model), trace.block.workload);
    std::vector<MeasuredKernel> bare = trace.kernels;
    for (MeasuredKernel& k : bare) k.site.clear();
    const SiteAssignment result = assign_sites(bare, plan);
    EXPECT_TRUE(result.same_kernels);
    EXPECT_EQ(result.named, trace.kernels.size());
    for (std::size_t i = 0; i < bare.size(); ++i) {
      EXPECT_EQ(bare[i].site, trace.kernels[i].site) << i << " " << bare[i].kernel;
    }
    ++judged;
  }
  EXPECT_GE(judged, 6);
}

INSTANTIATE_TEST_SUITE_P(Shipped, AssignSites,
                         ::testing::Values("h200-pytorch", "h200-pytorch-wide"),
                         [](const auto& p) { return std::to_string(p.index); });

MeasuredKernel named(const std::string& name, const std::string& site = "") {
  MeasuredKernel k;
  k.kernel = name;
  k.site = site;
  return k;
}

// gpt2's eager block: norm1 qkv attention oproj residual1 norm2 gateup act down residual2.
Plan gpt_plan() {
  return make_plan("eager", load_model("gpt2-large"), {.phase = Phase::forward, .seq = 128});
}

TEST(AssignSitesByKind, LeavesEmptyWhatMayBeAnything) {
  // One of two residual adds is missing: which?
  std::vector<MeasuredKernel> k = {named("layer_norm_kernel"),
                                   named("gemm"),
                                   named("flash"),
                                   named("gemm"),
                                   named("layer_norm_kernel"),
                                   named("gemm"),
                                   named("gelu"),
                                   named("gemm"),
                                   named("add")};
  const SiteAssignment result = assign_sites(k, gpt_plan());
  EXPECT_FALSE(result.same_kernels);
  EXPECT_EQ(k[0].site, "norm1");
  EXPECT_EQ(k[3].site, "oproj");
  EXPECT_EQ(k[7].site, "down");
  // Two pointwise kernels in a row where the plan has one each around a GEMM that is missing.
  std::vector<MeasuredKernel> odd = {named("gemm"), named("add")};
  assign_sites(odd, gpt_plan());
  EXPECT_EQ(odd[0].site, "");
}

TEST(AssignSitesByKind, KeepsSitesThatAreKnown) {
  std::vector<MeasuredKernel> k = {named("layer_norm_kernel", "mine"), named("gemm")};
  assign_sites(k, gpt_plan());
  EXPECT_EQ(k[0].site, "mine");
}

TEST(AssignSitesByKind, LeavesKernelsOfSeveralStepsEmpty) {
  const Plan plan =
      make_plan("coda", load_model("llama2-7b"), {.phase = Phase::forward, .seq = 128});
  std::vector<MeasuredKernel> k;
  for (const Kernel& planned : plan.kernels) {
    k.push_back(named(planned.name));
    k.back().recorded_kind = planned.kind;
  }
  const SiteAssignment result = assign_sites(k, plan);
  EXPECT_TRUE(result.same_kernels);
  EXPECT_LT(result.named, k.size());
}

}  // namespace
}  // namespace fuseline
