// Policies named with the version of the system that they imitate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/policy.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

std::string version_refusal(const std::string& text) {
  try {
    static_cast<void>(without_version("--policy", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PolicyVersions, AreLeftOutWhereTheyAreTheImitatedOnes) {
  EXPECT_EQ(without_version("--policy", "torch-compile@2.11"), "torch-compile");
  for (const PolicyInfo& p : policies()) {
    EXPECT_EQ(without_version("--policy", p.name), p.name);
    if (!p.version.empty())
      EXPECT_EQ(without_version("--policy", p.name + "@" + p.version), p.name);
  }
}

TEST(PolicyVersions, OthersAreRefusedWithTheOneThereIs) {
  for (const char* text : {"torch-compile@2.9", "torch-compile@", "torch-compile@2.11.0"})
    EXPECT_THAT(version_refusal(text), HasSubstr("allowed: torch-compile, or torch-compile@2.11"))
        << text;
  EXPECT_THAT(version_refusal("coda@1"), HasSubstr("imitates no version of a system"));
  // Whoever reads the name refuses it, with the nearest one.
  EXPECT_EQ(without_version("--policy", "torch-compiel@2.11"), "torch-compiel");
}

// A policy was compared with a version of its system, is ours, or says that nothing was compared.
TEST(PolicyVersions, UnverifiedPoliciesSaySo) {
  for (const PolicyInfo& p : policies())
    EXPECT_TRUE(p.version.empty() || p.unverified.empty()) << p.name;
  const auto info = [](const std::string& name) {
    for (const PolicyInfo& p : policies())
      if (p.name == name) return p;
    return PolicyInfo{};
  };
  for (const char* name : {"xla", "tensorrt-llm"})
    EXPECT_THAT(info(name).unverified, HasSubstr("documentation")) << name;
  EXPECT_EQ(info("eager").version, "2.11");
}

}  // namespace
}  // namespace fuseline
