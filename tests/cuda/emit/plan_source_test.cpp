#include "cuda/emit/plan_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {
namespace {

Gpu with_features(std::set<Feature> features) {
  Gpu gpu = load_gpu("h200");
  Architecture other = *gpu.architecture;
  other.name = "another";
  other.features = std::move(features);
  gpu.name = "some-gpu";
  gpu.architecture = std::make_shared<const Architecture>(other);
  return gpu;
}

TEST(PlanSource, FeaturesChooseTheMainloop) {
  EXPECT_EQ(target_of(load_gpu("h200")), SmTarget::sm_90a);
  EXPECT_EQ(target_of(load_gpu("b200")), SmTarget::sm_80) << "it has no wgmma";
  EXPECT_EQ(target_of(load_gpu("rtx4090")), SmTarget::sm_80);
  EXPECT_EQ(target_of(with_features({Feature::mma_sync, Feature::wgmma})), SmTarget::sm_80);
}

TEST(PlanSource, AnArchitectureWithoutKernelsIsRefusedByName) {
  try {
    static_cast<void>(target_of(with_features({Feature::mfma})));
    FAIL() << "accepted";
  } catch (const MissingError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("another"), std::string::npos) << text;
    EXPECT_NE(text.find("some-gpu"), std::string::npos) << text;
  }
  EXPECT_THROW(static_cast<void>(target_of(Gpu())), MissingError);
}

}  // namespace
}  // namespace fuseline::cuda
