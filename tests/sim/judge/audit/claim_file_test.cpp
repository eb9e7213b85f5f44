#include "sim/judge/audit/claim_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "sim/judge/audit/setting.h"
#include "tests/sim/judge/audit/claim_support.h"

namespace fuseline::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    claim_from(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ClaimFile, KeepsWhatTheSourceStatesApartFromWhatIsTried) {
  const Claim c = claim_from(speed_up_text("factor = { value = 1.7, unit = \"x\" }\nup_to = true",
                                           "baseline = [\"eager\", \"unfused\"]"));
  EXPECT_EQ(c.kind, Kind::speed_up);
  EXPECT_TRUE(c.figure.up_to);
  EXPECT_DOUBLE_EQ(c.figure.ratio.least, 1.7);
  EXPECT_THAT(c.stated, ElementsAre("model", "gpu"));
  EXPECT_THAT(c.choices.models, ElementsAre("tinyllama"));
  EXPECT_THAT(c.choices.seqs, ElementsAre(128, 256));
  EXPECT_THAT(c.choices.baselines, ElementsAre("eager", "unfused"));
  EXPECT_THAT(c.choices.policies, ElementsAre("coda"));  // where nothing is said
}

TEST(ClaimFile, FiguresAreScaledByTheirUnits) {
  const std::string text = "id = \"c\"\nstatement = \"s\"\nkind = \"latency\"\n" + source_text() +
                           "[figure]\nbefore = { value = 45.2, unit = \"ms\" }\n"
                           "after = { value = 26800, unit = \"us\" }\n"
                           "utilisation_after = { value = 94, unit = \"%\" }\n"
                           "[setting]\nmodel = \"llama2-7b\"\nphase = \"decode\"\n";
  const Claim c = claim_from(text);
  EXPECT_DOUBLE_EQ(c.figure.before.value(), 0.0452);
  EXPECT_DOUBLE_EQ(c.figure.after.value(), 0.0268);
  EXPECT_DOUBLE_EQ(c.figure.utilisation_after.value(), 0.94);
  EXPECT_FALSE(c.figure.utilisation_before);
}

TEST(ClaimFile, AChoiceCannotBeBothStatedAndTried) {
  EXPECT_THAT(refusal(speed_up_text("factor = { value = 2, unit = \"x\" }", "gpu = \"h100-sxm\"")),
              HasSubstr("[setting] has it too"));
}

TEST(ClaimFile, EveryShippedClaimIsRead) {
  const std::vector<Claim> claims = load_claims(shipped_claims());
  EXPECT_GE(claims.size(), 20U);
  for (const Claim& c : claims) {
    EXPECT_THAT(c.file, HasSubstr("/" + c.id + ".toml"));
    EXPECT_FALSE(c.source.title.empty());
    EXPECT_EQ(settings_of(c).empty(), c.kind == Kind::other) << c.id;
  }
}

TEST(Settings, AreEveryCombination) {
  const Claim c = claim_from(
      speed_up_text("factor = { value = 2, unit = \"x\" }",
                    "batch = [1, 2, 4]\nbaseline = [\"eager\", \"coda\"]\npolicy = \"coda\""));
  // 3 batches x 2 lengths; coda is not a baseline of coda.
  EXPECT_EQ(settings_of(c).size(), 6U);
}

TEST(Settings, LeaveOutPoliciesThatDoNotTrain) {
  std::string text = speed_up_text("factor = { value = 2, unit = \"x\" }",
                                   "baseline = [\"eager\", \"tensorrt-llm\"]");
  text.replace(text.find("\"forward\""), 9, "\"train\"");
  for (const Setting& s : settings_of(claim_from(text))) EXPECT_EQ(s.baseline, "eager");
}

TEST(Settings, AreBounded) {
  std::string many = "batch = [1";
  for (int i = 2; i <= 256; ++i) many += (i % 50 == 0 ? ",\n" : ", ") + std::to_string(i);
  many +=
      "]\nbaseline = [\"unfused\", \"composed\", \"eager\", \"xla\", \"torch-compile\", "
      "\"per-operator\"]";
  const Claim c = claim_from(speed_up_text("factor = { value = 2, unit = \"x\" }", many));
  EXPECT_THROW(settings_of(c), InputError);
}

// Bytes of a shipped claim exchanged, dropped and doubled: it is read or refused, nothing else.
TEST(ClaimFile, DamagedTextIsReadOrRefused) {
  std::ifstream in(shipped_claims() + "/llama-7b-batch-1-latency.toml");
  std::stringstream whole;
  whole << in.rdbuf();
  std::mt19937 random(7);
  std::size_t refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::string text = whole.str();
    for (int edit = 0; edit < 3; ++edit) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 128);
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.insert(at, text.substr(at, random() % 30));
      }
    }
    try {
      claim_from(text);
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
}

}  // namespace
}  // namespace fuseline::audit
