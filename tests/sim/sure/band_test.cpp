#include "sim/sure/band.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "sim/sure/band_file.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

// One class of each subject for any work.
std::vector<BandClass> any_work(double low, double high) {
  std::vector<BandClass> classes;
  for (const std::string& what : band_subjects()) {
    classes.push_back({.of = {.what = what, .phase = {}, .maker = {}, .kernels = {}, .size = {}},
                       .low = low,
                       .high = high,
                       .rows = 30,
                       .models = 3});
  }
  return classes;
}

const WorkClass kDecode{
    .what = "time", .phase = "decode", .maker = "own", .kernels = "dense", .size = "short"};

TEST(Band, TheClassWithTheMostWordsCounts) {
  std::vector<BandClass> classes = any_work(-0.5, 0.5);
  classes.push_back(
      {.of = {.what = "time", .phase = "decode", .maker = {}, .kernels = {}, .size = {}},
       .low = -0.2,
       .high = 0.1,
       .rows = 25,
       .models = 4});
  classes.push_back(
      {.of = {.what = "time", .phase = "decode", .maker = "library", .kernels = {}, .size = {}},
       .low = -0.3,
       .high = 0.3,
       .rows = 25,
       .models = 4});
  const BandTable table(classes, {});
  EXPECT_NEAR(table.of(kDecode, Standing::fitted, 1e-3).low, std::exp(-0.2), 1e-12);
  EXPECT_NEAR(table.of(kDecode, Standing::fitted, 1e-3).high, std::exp(0.1), 1e-12);
  WorkClass forward = kDecode;
  forward.phase = "forward";
  EXPECT_NEAR(table.of(forward, Standing::fitted, 1e-3).high, std::exp(0.5), 1e-12);
}

// A kind that is judged apart has the band of its own rows, and where it has none that of a GPU
// that nobody measured. Other work never gets it.
TEST(Band, OfAKindThatIsJudgedApartIsThatOfItsOwnRows) {
  std::vector<BandClass> classes = any_work(-0.1, 0.1);
  const std::vector<Widening> twice = {{.what = "time", .phase = {}, .uncalibrated = 2}};
  WorkClass chained = kDecode;
  chained.apart = "chain";
  EXPECT_NEAR(BandTable(classes, twice).of(chained, Standing::fitted, 1e-3).high, std::exp(0.2),
              1e-12);
  classes.push_back({.of = kDecode, .low = -0.05, .high = 0.05, .rows = 25, .models = 4});
  BandClass own{.of = {}, .low = -0.6, .high = 0.6, .rows = 6, .models = 3};
  own.of.what = "time";
  own.of.apart = "chain";
  classes.push_back(own);
  const BandTable table(classes, twice);
  EXPECT_NEAR(table.of(chained, Standing::fitted, 1e-3).high, std::exp(0.6), 1e-12);
  EXPECT_NEAR(table.of(kDecode, Standing::fitted, 1e-3).high, std::exp(0.05), 1e-12);
}

TEST(Band, IsWiderOnGpusThatWereNeverMeasured) {
  const BandTable table(any_work(-0.1, 0.1),
                        {{.what = "time", .phase = "", .checked = 1.5, .uncalibrated = 3},
                         {.what = "time", .phase = "decode", .checked = 2, .uncalibrated = 4}});
  EXPECT_NEAR(table.of(kDecode, Standing::fitted, 1e-3).high, std::exp(0.1), 1e-12);
  EXPECT_NEAR(table.of(kDecode, Standing::checked, 1e-3).high, std::exp(0.2), 1e-12);
  EXPECT_NEAR(table.of(kDecode, Standing::uncalibrated, 1e-3).low, std::exp(-0.4), 1e-12);
  WorkClass train = kDecode;
  train.phase = "train";
  EXPECT_NEAR(table.of(train, Standing::uncalibrated, 1e-3).high, std::exp(0.3), 1e-12);
}

// Beyond the sizes of all rows, and for kernels of which none is, residuals say less.
TEST(Band, IsWiderBeyondItsRowsAndForUnseenKernels) {
  std::vector<BandClass> classes = any_work(-0.1, 0.1);
  for (BandClass& c : classes) {
    c.least = 1e-4;
    c.most = 1e-2;
  }
  const BandTable table(classes, {{.what = "time", .phase = {}, .beyond = 2, .unseen = 1.5},
                                  {.what = "hbm", .phase = {}, .beyond = 2}});
  const auto high = [&](const char* what, double predicted) {
    WorkClass work = kDecode;
    work.what = what;
    return std::log(table.of(work, Standing::fitted, predicted).high);
  };
  EXPECT_NEAR(high("hbm", 1e-4), 0.1, 1e-12);
  EXPECT_NEAR(high("hbm", 1e-2), 0.1, 1e-12);
  EXPECT_NEAR(high("hbm", 1e-2 * std::exp(0.5)), 0.2, 1e-12);
  EXPECT_NEAR(high("hbm", 1e-4 / std::exp(0.25)), 0.15, 1e-12);
  EXPECT_NEAR(high("hbm", 1e6), 0.4, 1e-12);  // four times at most
  EXPECT_NEAR(high("time", 1e-3), 0.15, 1e-12);
  EXPECT_NEAR(high("time", 1e-2 * std::exp(0.5)), 0.3, 1e-12);
}

// With a slope below 1 the truth lies nearer to 1 than the prediction, whichever plan is faster.
TEST(Band, OfAGainFollowsTheSlopeAndIsTheSameEitherWayRound) {
  std::vector<BandClass> classes = any_work(-0.02, 0.02);
  for (BandClass& c : classes) {
    if (c.of.what == "gain") c.slope = 0.5;
  }
  const BandTable table(classes, {});
  WorkClass gain = kDecode;
  gain.what = "gain";
  const Band up = table.of_gain(gain, Standing::fitted, 1.1);
  const double size = std::log(1.1);
  EXPECT_NEAR(1.1 * up.low, std::exp(0.5 * size - 0.02), 1e-12);
  EXPECT_EQ(up.high, 1);  // the estimate is always within
  const Band down = table.of_gain(gain, Standing::fitted, 1 / 1.1);
  EXPECT_NEAR(down.high * up.low, 1, 1e-12);
  EXPECT_NEAR(down.low * up.high, 1, 1e-12);
}

TEST(Band, SaysFasterOnlyWhereTheWholeBandIs) {
  EXPECT_EQ(verdict_of(1.10, {.low = 0.95, .high = 1.05}), "faster");
  EXPECT_EQ(verdict_of(1.10, {.low = 0.90, .high = 1.05}), "too close to call");
  EXPECT_EQ(verdict_of(0.90, {.low = 0.95, .high = 1.05}), "slower");
  EXPECT_EQ(verdict_of(0.98, {.low = 0.95, .high = 1.05}), "too close to call");
}

TEST(Band, IsPrintedWithBothEndsWhereTheyDiffer) {
  EXPECT_EQ(in_percent({.low = 0.96, .high = 1.04}), "±4 %");
  EXPECT_EQ(in_percent({.low = 0.98, .high = 1.11}), "-2 +11 %");
}

TEST(Band, EndsOfBytesAreWholeAndNeverNarrower) {
  const Band band{.low = 0.9, .high = 1.1};
  EXPECT_EQ(low_end(Bytes(15), band), Bytes(13));
  EXPECT_EQ(high_end(Bytes(15), band), Bytes(17));
}

class BandFile : public testing::Test {
 protected:
  static BandTable load(const std::string& text) {
    const auto path = std::filesystem::path(testing::TempDir()) / "bands.toml";
    std::ofstream(path) << text;
    return BandTable::load(path.string());
  }
  static std::string good() {
    return bands_toml(
        BandTable(any_work(-0.1, 0.2), {{.what = "hbm", .phase = "train", .machines = 5}},
                  {{.what = "gain",
                    .phase = "train",
                    .trait = "launch",
                    .slope = -0.25,
                    .centre = -9.5,
                    .least = -12,
                    .most = -7}}),
        {.measurements = {"h200-open"}, .date = "2026-11-23", .notes = {"A note."}});
  }
  static void refuses(const std::string& from, const std::string& to, const std::string& message) {
    std::string text = good();
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    try {
      load(text);
      FAIL() << "not refused: " << to;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
      EXPECT_THAT(error.what(), HasSubstr("bands.toml"));
    }
  }
};

TEST_F(BandFile, IsReadAsItIsWritten) {
  const BandTable table = load(good());
  ASSERT_EQ(table.classes().size(), band_subjects().size());
  EXPECT_EQ(table.classes().front().low, -0.1);
  EXPECT_EQ(table.classes().front().high, 0.2);
  ASSERT_EQ(table.widenings().size(), 1U);
  EXPECT_EQ(table.widenings().front().phase, "train");
  EXPECT_EQ(table.widenings().front().machines, 5);
  ASSERT_EQ(table.spreads().size(), 1U);
  EXPECT_EQ(table.spreads().front().trait, "launch");
  EXPECT_EQ(table.spreads().front().slope, -0.25);
  EXPECT_EQ(table.spreads().front().least, -12);
}

TEST_F(BandFile, RefusesWhatIsWrong) {
  refuses("what = \"hbm\"", "what = \"hmb\"", "hbm");
  refuses("low = -0.1", "low = 0.1", "low");
  refuses("high = 0.2", "high = -0.2", "high");
  refuses("rows = 30", "rows = 0", "rows");
  refuses("models = 3", "models = 31", "models");
  refuses("coverage = 0.9", "coverage = 0.5", "coverage");
  refuses("date = \"2026-11-23\"", "date = \"today\"", "date");
  refuses("checked = 1.00", "checked = 0.50", "checked");
  refuses("machines = 5", "machines = -1", "machines");
  refuses("trait = \"launch\"", "trait = \"limits\"", "launch");
  refuses("least = -12.0000", "least = -9.0000", "least");
  refuses("what = \"kernel_time\"", "what = \"time\"", "twice");
  refuses("[[class]]\nwhat = \"time\"\n", "[[class]]\nwhat = \"time\"\nphase = \"decode\"\n",
          "classes of time");
}

TEST(ShippedBands, HoldTheirEstimateForEveryPolicyAndPhase) {
  const ModelConfig model = load_model("gpt2-large");
  for (const char* name : {"h200", "h100-sxm", "a100-sxm-80gb"}) {
    const Gpu gpu = load_gpu(name);
    for (const Workload& w :
         {Workload{.phase = Phase::forward, .batch = 1, .seq = 37},
          Workload{.phase = Phase::decode, .batch = 3, .seq = 1, .context = 77}}) {
      const Sureness sure(gpu, w);
      for (const PolicyInfo& policy : policies()) {
        const PlanEstimate e =
            simulate(make_plan(policy.name, model, w, plan_target(gpu)), gpu, Fidelity::hierarchy);
        for (const auto& band : {sure.time(e), sure.hbm(e)}) {
          ASSERT_TRUE(band);
          EXPECT_LE(band->low, 1) << policy.name;
          EXPECT_GE(band->high, 1) << policy.name;
          EXPECT_LT(band->low, band->high) << policy.name;
        }
      }
    }
  }
}

TEST(ShippedBands, AreWiderWhereNothingWasCompared) {
  const Gpu gpu = load_gpu("h200");
  const Workload bf16{.phase = Phase::forward, .batch = 1, .seq = 64};
  EXPECT_EQ(standing_for(gpu, bf16, "coda"), Standing::fitted);
  EXPECT_EQ(standing_for(gpu, bf16, "xla"), Standing::uncalibrated);
  Workload codes = bf16;
  codes.formats.weights = parse_stored_weight("int4:128", "weights", "bf16");
  EXPECT_EQ(standing_for(gpu, codes, "coda"), Standing::uncalibrated);
}

TEST(ShippedBands, AreWiderOnAGpuThatWasNeverMeasured) {
  for (const BandClass& c : shipped_bands().classes()) {
    const Band fitted = shipped_bands().of(c.of, Standing::fitted, 0);
    const Band checked = shipped_bands().of(c.of, Standing::checked, 0);
    const Band never = shipped_bands().of(c.of, Standing::uncalibrated, 0);
    EXPECT_LE(checked.low, fitted.low);
    EXPECT_GE(checked.high, fitted.high);
    EXPECT_LE(never.low, checked.low);
    EXPECT_GE(never.high, checked.high);
    EXPECT_GT(never.high / never.low, fitted.high / fitted.low) << c.of.what << " " << c.of.phase;
  }
}

}  // namespace
}  // namespace fuseline
