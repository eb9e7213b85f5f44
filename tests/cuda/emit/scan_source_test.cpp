// What has no device code yet is refused by name, and what is around it still has its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/emit/plan_source.h"
#include "model/policy.h"
#include "tests/model/scan_support.h"

namespace fuseline::cuda {
namespace {

using ::testing::HasSubstr;

std::string refusal(const Plan& plan, const Kernel& kernel) {
  try {
    kernel_sources(plan, kernel, load_gpu("h200"), SmTarget::sm_90a);
  } catch (const MissingError& error) {
    return error.what();
  }
  return "";
}

TEST(ScanSource, ScansAndConvolutionsAreRefusedByName) {
  const Graph graph = test::mixer_graph({4, 2, 16, 16, 2, 64, 16}, 64, 4, Dtype::bf16);
  for (const char* policy : {"unfused", "per-operator", "torch-compile", "coda"}) {
    const Plan plan = make_plan(policy, graph);
    int scans = 0;
    int convolutions = 0;
    for (const Kernel& kernel : plan.kernels) {
      const std::string why = refusal(plan, kernel);
      if (kernel.kind == KernelKind::scan) {
        EXPECT_THAT(
            why, HasSubstr("kernel " + kernel.name + ": a scan has no kernel for a real GPU yet"));
        ++scans;
      } else if (kernel.kind == KernelKind::conv) {
        EXPECT_THAT(why, HasSubstr(": convolve_rows has no kernel for a real GPU yet"));
        ++convolutions;
      } else {
        EXPECT_EQ(why, "") << policy << ' ' << kernel.name;
      }
    }
    EXPECT_EQ(scans, 1) << policy;
    EXPECT_EQ(convolutions, 1) << policy;
  }
}

}  // namespace
}  // namespace fuseline::cuda
