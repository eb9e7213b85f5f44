// The rules on outcomes that are made up, then on small claims that are predicted.
#include "sim/judge/audit/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/judge/audit/audit.h"
#include "tests/sim/judge/audit/claim_support.h"

namespace fuseline::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Claim speed_up(const std::string& figure) {
  return claim_from(speed_up_text("factor = " + figure, ""));
}

// A setting on that GPU whose prediction is `predicted` and whose limit is `limit`.
Tried tried(const Claim& claim, const std::string& gpu, double predicted, double limit) {
  Tried t;
  t.setting = settings_of(claim).front();
  t.setting.gpu = gpu;
  const Range supporting = supporting_speed_ups(claim);
  Outcome& o = t.outcome;
  o.predicted = predicted;
  o.limit = limit;
  o.reached = predicted >= supporting.least && predicted <= supporting.most;
  o.bolder = predicted > supporting.most;
  o.possible = claim.figure.ratio.least <= limit;
  o.obstacle = o.possible ? "" : "the limits";
  o.before = Seconds(1);
  o.after = Seconds(1 / predicted);
  o.least = Seconds(1 / limit);
  return t;
}

TEST(Verdict, PlausibleWhereEverySettingReachesIt) {
  const Claim c = speed_up("{ least = 1.1, most = 1.3, unit = \"x\" }");
  const Verdict v = judge(c, {tried(c, "a", 1.2, 2), tried(c, "b", 1.3, 2)});
  EXPECT_EQ(v.judgement, Judgement::plausible);
  EXPECT_THAT(v.conditions, IsEmpty());
  EXPECT_THAT(v.reason, HasSubstr("1.20x to 1.30x predicted in 2 settings"));
}

TEST(Verdict, PlausibleWhereEverySettingSaysMore) {
  const Claim c = speed_up("{ value = 1.1, unit = \"x\" }");
  const Verdict v = judge(c, {tried(c, "a", 1.4, 2)});
  EXPECT_EQ(v.judgement, Judgement::plausible);
  EXPECT_THAT(v.reason, HasSubstr("more than claimed"));
}

TEST(Verdict, OnlyIfWhereSomeSettingsReachIt) {
  const Claim c = speed_up("{ value = 1.5, unit = \"x\" }");
  const Verdict v = judge(c, {tried(c, "a", 1.0, 2), tried(c, "b", 1.5, 2)});
  EXPECT_EQ(v.judgement, Judgement::only_if);
  EXPECT_THAT(v.conditions, ElementsAre("GPU b"));
  EXPECT_THAT(v.reason, HasSubstr("1 of 2 settings"));
}

TEST(Verdict, OnlyIfBetterThanPredictedWhereTheLimitsAllowIt) {
  const Claim c = speed_up("{ value = 1.5, unit = \"x\" }");
  const Verdict v = judge(c, {tried(c, "a", 1.2, 2)});
  EXPECT_EQ(v.judgement, Judgement::only_if);
  // 1.5 less the tolerance of 5 % is 1.425 of 2; predicted is 1.2 of 2.
  ASSERT_EQ(v.conditions.size(), 1U);
  EXPECT_THAT(v.conditions[0], HasSubstr("71 % of the limits, where 60 % is predicted"));
}

TEST(Verdict, ContradictsWhereNoLimitAllowsIt) {
  const Claim c = speed_up("{ value = 3, unit = \"x\" }");
  const Verdict v = judge(c, {tried(c, "a", 1.2, 2), tried(c, "b", 1.2, 2.5)});
  EXPECT_EQ(v.judgement, Judgement::contradicts);
  EXPECT_THAT(v.reason, HasSubstr("on b"));  // the nearest
}

TEST(Verdict, NotTestableSaysWhy) {
  const Claim c = claim_from("id = \"c\"\nstatement = \"s\"\nkind = \"other\"\n" +
                             std::string("not_testable = \"no such numbers\"\n") + source_text());
  const Verdict v = judge(c, {});
  EXPECT_EQ(v.judgement, Judgement::not_testable);
  EXPECT_EQ(v.reason, "no such numbers");
}

Audited verdict_on(const std::string& text) {
  return audit_claims({claim_from(text)}, {}).claims.front();
}

// From here on real predictions. No fusion makes a forward pass a hundred times faster.
TEST(AuditedClaim, AHundredfoldSpeedUpContradictsTheLimits) {
  const Audited a = verdict_on(speed_up_text("factor = { value = 100, unit = \"x\" }", ""));
  EXPECT_EQ(a.verdict.judgement, Judgement::contradicts);
  EXPECT_LT(boldest_limit(a), 90);
}

TEST(AuditedClaim, FusingIsAtLeastNoSlowerThanEager) {
  const Audited a = verdict_on(
      speed_up_text("factor = { least = 1, most = 3, unit = \"x\" }", "baseline = \"eager\""));
  EXPECT_EQ(a.verdict.judgement, Judgement::plausible) << a.verdict.reason;
  EXPECT_GT(predicted_range(a).least, 1);
}

TEST(AuditedClaim, UpToIsJudgedByTheBestCase) {
  // Predicted 1.4 to 1.9: as a value that is too much, as a best case it is reached.
  const Audited best = verdict_on(speed_up_text(
      "factor = { value = 1.2, unit = \"x\" }\nup_to = true", "baseline = \"eager\""));
  EXPECT_EQ(best.verdict.judgement, Judgement::plausible);
}

TEST(AuditedClaim, PredictionsStayBelowTheLimits) {
  const Audited a = verdict_on(speed_up_text("factor = { value = 2, unit = \"x\" }",
                                             "baseline = [\"unfused\", \"eager\"]\npolicy = "
                                             "[\"coda\", \"whole-block\", \"torch-compile\"]"));
  for (const Tried& t : a.tried) EXPECT_LE(t.outcome.predicted, t.outcome.limit);
}

// 22 layers and the embeddings of TinyLlama are 2.2 GB in bf16.
std::string latency_text(const std::string& before, const std::string& after,
                         const std::string& use) {
  return "id = \"c\"\nstatement = \"s\"\nkind = \"latency\"\n" + source_text() +
         "[figure]\nbefore = { value = " + before +
         ", unit = \"ms\" }\nafter = { value = " + after + ", unit = \"ms\" }\n" + use +
         "[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = \"decode\"\ncontext = 512\n"
         "baseline = \"eager\"\n";
}

TEST(AuditedClaim, LatencyBelowTheTimeToReadTheWeightsContradicts) {
  const Audited a = verdict_on(latency_text("2", "0.3", ""));
  EXPECT_EQ(a.verdict.judgement, Judgement::contradicts);
  EXPECT_THAT(a.verdict.reason, HasSubstr("through HBM"));
}

TEST(AuditedClaim, UtilisationsThatMeanImpossibleSavingsContradict) {
  const Audited a = verdict_on(latency_text("2", "1",
                                            "utilisation_before = { value = 80, unit = \"%\" }\n"
                                            "utilisation_after = { value = 90, unit = \"%\" }\n"));
  EXPECT_EQ(a.verdict.judgement, Judgement::contradicts);
  EXPECT_THAT(a.verdict.reason, HasSubstr("44 % fewer bytes"));
}

TEST(AuditedClaim, PredictedLatenciesArePlausible) {
  // As predicted, so that the rule and not the simulator is tested.
  const Audited first = verdict_on(latency_text("2", "1", ""));
  const Outcome& o = first.tried.front().outcome;
  const Audited a = verdict_on(latency_text(std::to_string(o.before.value() * 1e3),
                                            std::to_string(o.after.value() * 1e3), ""));
  EXPECT_EQ(a.verdict.judgement, Judgement::plausible) << a.verdict.reason;
}

TEST(AuditedClaim, MemoryDependsOnTheBitsPerWeight) {
  const Audited a =
      verdict_on("id = \"c\"\nstatement = \"s\"\nkind = \"fits-in-memory\"\n" + source_text() +
                 "[setting]\nmodel = \"llama2-70b\"\ngpu = \"rtx5090\"\nphase = \"decode\"\n"
                 "[try]\ncontext = 512\nweight_bits = [2, 3, 4, 16]\n");
  EXPECT_EQ(a.verdict.judgement, Judgement::only_if);
  EXPECT_THAT(a.verdict.conditions, ElementsAre("bits per weight <= 3"));
  EXPECT_NEAR(boldest_limit(a), 68.977 * 2 / 8, 0.01);  // GB of the weights at 2 bits
}

TEST(AuditedClaim, CostFallsWithThePriceAndHasALimit) {
  const auto text = [](const std::string& cost) {
    return "id = \"c\"\nstatement = \"s\"\nkind = \"cost-per-million-tokens\"\n" + source_text() +
           "[figure]\ncost_per_million_tokens = { value = " + cost +
           ", unit = \"USD\" }\n[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = "
           "\"decode\"\n"
           "[try]\ncontext = 512\nprice_per_hour = [1, 4]\n";
  };
  EXPECT_EQ(verdict_on(text("0.0001")).verdict.judgement, Judgement::contradicts);
  EXPECT_EQ(verdict_on(text("100")).verdict.judgement, Judgement::plausible);
  const Audited a = verdict_on(text("100"));
  ASSERT_EQ(a.tried.size(), 2U);
  EXPECT_NEAR(a.tried[1].outcome.predicted / a.tried[0].outcome.predicted, 4, 1e-9);
}

TEST(AuditedClaim, PartsOfABlockAreOfTheirSitesOnly) {
  std::string text = speed_up_text("factor = { least = 0.8, most = 1.6, unit = \"x\" }",
                                   "baseline = \"torch-compile\"");
  const Audited whole = verdict_on(text);
  text.insert(text.find("[source]"), "sites = [\"gateup\", \"act\"]\n");
  const Audited part = verdict_on(text);
  EXPECT_LT(part.tried[0].outcome.before, whole.tried[0].outcome.before * 0.6);
  EXPECT_GT(part.tried[0].outcome.before, whole.tried[0].outcome.before * 0.1);
}

}  // namespace
}  // namespace fuseline::audit
