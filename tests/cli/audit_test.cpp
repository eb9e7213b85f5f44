#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Small enough for a sanitizer build.
std::string claim_text(const std::string& id, const std::string& factor,
                       const std::string& gpu = "a100-sxm-80gb") {
  return "id = \"" + id +
         "\"\nstatement = \"TinyLlama gets faster\"\nkind = \"speed-up\"\n[source]\n"
         "title = \"a report\"\ndate = \"2026\"\n[figure]\nfactor = { value = " +
         factor + ", unit = \"x\" }\nup_to = true\n[setting]\nmodel = \"tinyllama\"\ngpu = \"" +
         gpu +
         "\"\n"
         "phase = \"decode\"\n[try]\nbaseline = [\"composed\", \"eager\"]\ncontext = 256\n";
}

std::string claims_folder() {
  const std::string first = temporary_file("modest.toml", claim_text("modest", "1.01"));
  temporary_file("absurd.toml", claim_text("absurd", "50"));
  const std::filesystem::path folder = std::filesystem::path(first).parent_path() / "claims";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const char* name : {"modest.toml", "absurd.toml"}) {
    std::filesystem::copy_file(folder.parent_path() / name, folder / name);
  }
  return folder.string();
}

TEST(AuditJson, HasTheKeysOfTheContract) {
  const CliRun run = cli({"audit", "--claims", claims_folder(), "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");  // no terminal, no progress
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("schema"), "fuseline.audit/1");
  EXPECT_EQ(j.at("uncalibrated_gpus"), json::array({"a100-sxm-80gb"}));
  EXPECT_EQ(j.at("checked_gpus"), json::array());
  ASSERT_EQ(j.at("claims").size(), 2U);
  const json& absurd = j.at("claims")[0];
  EXPECT_EQ(absurd.at("id"), "absurd");
  EXPECT_EQ(absurd.at("verdict"), "contradicts the limits");
  EXPECT_LT(absurd.at("limit").at("value").get<double>(), 50 / 1.1);
  const json& modest = j.at("claims")[1];
  EXPECT_EQ(modest.at("verdict"), "plausible");
  EXPECT_EQ(modest.at("settings").size(), 2U);
  EXPECT_EQ(modest.at("claimed").at("up_to"), true);
  EXPECT_GE(modest.at("predicted").at("least").get<double>(), 1.01);
  EXPECT_EQ(modest.at("source").at("title"), "a report");
  for (const char* key : {"reason", "conditions", "findings", "measured", "assumptions"}) {
    EXPECT_TRUE(modest.contains(key)) << key;
  }
}

TEST(AuditTable, SaysAVerdictForEachClaimAndWhichGpusAreUncalibrated) {
  const CliRun run = cli({"audit", "--claims", claims_folder()});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  EXPECT_THAT(run.out, HasSubstr("absurd: contradicts the limits: "));
  EXPECT_THAT(run.out, HasSubstr("modest: plausible: "));
  EXPECT_THAT(run.out, HasSubstr("UNCALIBRATED: a100-sxm-80gb"));
  EXPECT_THAT(run.out, Not(HasSubstr("TinyLlama gets faster")));
}

// Nothing was fitted on an H100, but blocks were measured on it.
TEST(AuditTable, SaysHowWellAGpuWasChecked) {
  const std::string file = temporary_file("h100.toml", claim_text("h100", "1.01", "h100-sxm"));
  const CliRun run = cli({"audit", "--claims", file});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  EXPECT_THAT(run.out, Not(HasSubstr("UNCALIBRATED")));
  EXPECT_THAT(run.out, HasSubstr("CHECKED: "));
  EXPECT_THAT(run.out, HasSubstr("h100-sxm: 18"));
  const json j = json::parse(cli({"audit", "--claims", file, "--format", "json"}).out);
  EXPECT_EQ(j.at("uncalibrated_gpus"), json::array());
  EXPECT_EQ(j.at("checked_gpus"), json::array({"h100-sxm"}));
}

TEST(AuditTable, SaysWhatAVerdictRestsOn) {
  const CliRun run = cli({"audit", "--claims", claims_folder()});
  EXPECT_THAT(run.out, HasSubstr("this rests on what the source leaves open: "));
  EXPECT_THAT(run.out, HasSubstr("number format bf16"));
}

TEST(AuditTable, OfChosenClaimsShowsDetails) {
  const CliRun run = cli({"audit", "modest", "--claims", claims_folder()});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("TinyLlama gets faster"));
  EXPECT_THAT(run.out, Not(HasSubstr("absurd")));
}

TEST(AuditMarkdown, IsTheSameEveryTime) {
  const std::string folder = claims_folder();
  const CliRun first = cli({"audit", "--claims", folder, "--format", "markdown"});
  EXPECT_THAT(first.out, HasSubstr("| [modest](#modest) | up to 1.01x |"));
  EXPECT_EQ(first.out, cli({"audit", "--claims", folder, "--format", "markdown"}).out);
}

TEST(AuditOutput, GoesToTheFile) {
  const std::string path = temporary_file("audit.json", "old");
  const CliRun run =
      cli({"audit", "modest", "--claims", claims_folder(), "--format", "json", "--output", path});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "");
  std::ifstream in(path);
  EXPECT_EQ(json::parse(in).at("claims").size(), 1U);
}

TEST(AuditErrors, NameWhatIsWrong) {
  const auto expect_refused = [](const std::vector<std::string>& args,
                                 const std::vector<std::string>& said) {
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2) << run.out;
    EXPECT_EQ(run.out, "");
    for (const std::string& part : said) EXPECT_THAT(run.err, HasSubstr(part));
  };
  expect_refused({"audit", "whole-blok-fusion"},
                 {"CLAIM-ID = 'whole-blok-fusion'", "did you mean 'whole-block-fusion'?"});
  expect_refused({"audit", "--claims",
                  temporary_file("several.toml", claim_text("several", "2", "8xh100-sxm"))},
                 {"several.toml", "several GPUs are not built yet", "did you mean 'h100-sxm'?"});
  expect_refused({"audit", "--claims", "nowhere"}, {"nowhere", "no such file"});
  expect_refused({"audit", "--format", "markdwn"}, {"--format", "did you mean 'markdown'?"});

  const std::filesystem::path empty = std::filesystem::path(claims_folder()) / "none";
  std::filesystem::create_directories(empty);
  expect_refused({"audit", "--claims", empty.string()}, {"holds no claims"});

  const std::string folder = claims_folder();
  std::ofstream(folder + "/other.toml") << claim_text("modest", "2");
  expect_refused({"audit", "--claims", folder}, {"other.toml", "id = 'modest'", "same id"});
}

}  // namespace
}  // namespace fuseline
