// Policies on the command line: with versions, and what is said of those that nothing was compared
// with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

TEST(PolicyNames, PoliciesMayBeNamedWithTheirVersion) {
  const auto with = [](const char* policy) {
    return cli({"predict", "--gpu", "h200", "--policy", policy, "--format", "csv"});
  };
  EXPECT_EQ(with("torch-compile@2.11,coda").out, with("torch-compile,coda").out);
  const CliRun other = with("torch-compile@1.0");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, testing::HasSubstr("allowed: torch-compile, or torch-compile@2.11"));
  const CliRun twice = with("eager,eager@2.11");
  EXPECT_EQ(twice.status, 2) << twice.out;
}

TEST(PolicyNames, SaysWhichPoliciesAreUnverified) {
  EXPECT_THAT(cli({"predict", "--gpu", "h200", "--policy", "xla,coda"}).out,
              testing::HasSubstr("UNVERIFIED: xla: "));
  EXPECT_THAT(cli({"predict", "--gpu", "h200", "--policy", "eager,coda"}).out,
              testing::Not(testing::HasSubstr("UNVERIFIED")));
}

}  // namespace
}  // namespace fuseline
