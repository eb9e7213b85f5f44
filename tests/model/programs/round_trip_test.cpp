// Print, read, print is the identity for the plans of shipped models.
#include "tests/model/programs/round_trip.h"

#include <set>

#include "base/error.h"
#include "model/config/model_files.h"
#include "model/policy.h"

namespace fuseline {
namespace {

struct Case {
  std::string model, policy;
  Phase phase;
};

// All plans that there are: of each model under each policy in each phase that it supports.
void round_trips(std::size_t every) {
  std::size_t index = 0, made = 0;
  for (const std::string& name : model_names()) {
    const ModelConfig model = load_model(name);
    for (const PolicyInfo& info : policies())
      for (const Phase phase : {Phase::forward, Phase::train, Phase::decode}) {
        const std::string& policy = info.name;
        if (index++ % every != 0) continue;
        Workload w{.phase = phase};
        if (phase == Phase::decode) {
          w.seq = 1;
          w.context = 512;
        } else {
          w.seq = 256;
        }
        Plan plan;
        try {
          plan = make_plan(policy, model, w, Target{});
        } catch (const InputError&) {
          continue;  // a phase that the policy or the model does not have
        }
        ++made;
        const std::string what = name + " " + policy + " " + name_of(phase);
        (void)test::expect_round_trip(plan, what);
        if (testing::Test::HasFailure()) return;
      }
  }
  EXPECT_GT(made, 10U);
  testing::Test::RecordProperty("plans", static_cast<int>(made));
}

TEST(RoundTrip, IsTheIdentityForASpreadSampleOfThePlans) { round_trips(37); }

// A product with the norm's weight reads heads that the plan interleaved, and has no pairs itself.
TEST(RoundTrip, KnowsWeightsThatThePlanReorders) {
  const Plan plan = make_plan("coda", load_model("falcon-7b"),
                              {.phase = Phase::train, .batch = 1, .seq = 256}, Target{});
  (void)test::expect_round_trip(plan, "falcon-7b coda train");
}

// "4095:4096 of every 4096" is a run of rows and no product of sizes.
TEST(RoundTrip, ReadsRowsThatLieApart) {
  const Plan plan =
      make_plan("coda", load_model("llama3-8b"),
                {.phase = Phase::decode, .batch = 8, .seq = 1, .context = 4096}, Target{});
  (void)test::expect_round_trip(plan, "llama3-8b coda decode");
}

TEST(LongRoundTrip, IsTheIdentityForEveryPlanOfEveryShippedModel) { round_trips(1); }

}  // namespace
}  // namespace fuseline
