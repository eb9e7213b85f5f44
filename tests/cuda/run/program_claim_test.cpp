// What may be called a speed: decided on evidence, without a GPU.
#include "cuda/run/program_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

SeedRun right_run(std::uint64_t seed) {
  SeedRun run{.seed = seed, .bits = 100 + seed, .check = {}};
  run.check.tensors = {{.name = "y", .program = "p", .error = 1e-3, .allowed = 1e-2}};
  return run;
}

// 2048 x 4096 x 4096 on an H200 at 600 of its 989 TFLOP/s.
ClaimEvidence honest() {
  ClaimEvidence e;
  e.seeds = {right_run(1), right_run(2), right_run(3)};
  e.flops = Flops(2LL * 2048 * 4096 * 4096);
  e.compulsory = Bytes(2LL * (2048 * 4096 * 2 + 4096 * 4096));
  e.least = Seconds(e.flops.as_double() / 600e12);
  return e;
}

std::vector<std::string> rules_of(const ClaimEvidence& e) {
  std::vector<std::string> rules;
  for (const ClaimFault& f : claim_faults(e, load_gpu("h200"))) rules.push_back(f.rule);
  return rules;
}

TEST(ProgramClaim, AcceptsWhatIsRightAndPossible) {
  EXPECT_THAT(rules_of(honest()), testing::IsEmpty());
}

TEST(ProgramClaim, RefusesMoreFlopsThanTensorCoresDo) {
  ClaimEvidence e = honest();
  e.least = Seconds(e.flops.as_double() / 1200e12);
  EXPECT_THAT(rules_of(e), testing::ElementsAre("above-ceilings"));
}

TEST(ProgramClaim, RefusesMoreBytesThanMemoryMoves) {
  ClaimEvidence e = honest();
  e.flops = Flops(0);
  e.compulsory = Bytes(1'000'000'000);
  e.least = Seconds(1e9 / 5.6e12);  // the H200 moves 4.8 TB/s, and its L2 holds 63 MB
  EXPECT_THAT(rules_of(e), testing::ElementsAre("above-ceilings"));
  e.least = Seconds(1e9 / 4.4e12);
  EXPECT_THAT(rules_of(e), testing::IsEmpty());
}

TEST(ProgramClaim, BytesThatL2CanHoldNeedNoMemory) {
  ClaimEvidence e = honest();
  e.flops = Flops(0);
  e.compulsory = Bytes(20'000'000);
  e.least = microseconds(2);
  EXPECT_THAT(rules_of(e), testing::IsEmpty());
}

TEST(ProgramClaim, RefusesOutputsThatIgnoreTheInputs) {
  ClaimEvidence e = honest();
  for (SeedRun& run : e.seeds) run.bits = 7;
  EXPECT_THAT(rules_of(e), testing::ElementsAre("ignores-inputs"));
}

TEST(ProgramClaim, RefusesTimedRunsThatStoredNothing) {
  ClaimEvidence e = honest();
  e.stored_while_timed = false;
  EXPECT_THAT(rules_of(e), testing::ElementsAre("no-work"));
}

TEST(ProgramClaim, RefusesResultsRightForOneSeed) {
  ClaimEvidence e = honest();
  e.seeds[1].check.tensors[0].error = 0.5;
  e.seeds[2].check.tensors[0].error = 0.5;
  const std::vector<ClaimFault> faults = claim_faults(e, load_gpu("h200"));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].rule, "one-seed");
  EXPECT_THAT(faults[0].text, HasSubstr("right for seed 1 and wrong for seeds 2, 3"));
}

TEST(ProgramClaim, NotANumberIsNoAgreement) {
  ClaimEvidence e = honest();
  for (SeedRun& run : e.seeds)
    run.check.tensors[0].error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(rules_of(e), testing::ElementsAre("wrong"));
}

TEST(ProgramClaim, RefusesWhatNobodyChecked) {
  ClaimEvidence e = honest();
  for (SeedRun& run : e.seeds) run.check = {.tensors = {}, .rows = 0, .why_not = "attention"};
  EXPECT_THAT(rules_of(e), testing::ElementsAre("unchecked"));
  e = honest();
  e.seeds.pop_back();
  EXPECT_THAT(rules_of(e), testing::ElementsAre("unchecked"));
  e = honest();
  for (SeedRun& run : e.seeds) run.check.tensors.clear();
  EXPECT_THAT(rules_of(e), testing::ElementsAre("wrong"));
}

TEST(ProgramClaim, EveryFaultHasARuleOfTheList) {
  const std::vector<std::string> rules = claim_rules();
  EXPECT_EQ(std::set<std::string>(rules.begin(), rules.end()).size(), rules.size());
  for (const char* rule : {"above-ceilings", "no-work", "ignores-inputs", "one-seed", "wrong"})
    EXPECT_THAT(rules, testing::Contains(rule));
}

}  // namespace
}  // namespace fuseline::cuda
