#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "sim/selection/size_list.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> sizes(const std::string& text) {
  return parse_sizes("--batch", text, 1, 1 << 24);
}

TEST(Sizes, AreListedOrARange) {
  EXPECT_THAT(sizes("4"), ElementsAre(4));
  EXPECT_THAT(sizes("1,2, 8"), ElementsAre(1, 2, 8));
  EXPECT_THAT(sizes("2048:16384:x2"), ElementsAre(2048, 4096, 8192, 16384));
  EXPECT_THAT(sizes("16:70:+16"), ElementsAre(16, 32, 48, 64));
  EXPECT_THAT(sizes("1,16:64:x4,3"), ElementsAre(1, 16, 64, 3));
  EXPECT_THAT(sizes("5:5:x2"), ElementsAre(5));
}

TEST(Sizes, SayWhichItemIsWrong) {
  for (const auto& [text, item] :
       std::vector<std::pair<std::string, std::string>>{{"1,x", "'x'"},
                                                        {"8:1:x2", "'8:1:x2'"},
                                                        {"1:8", "'1:8'"},
                                                        {"1:8:2", "'1:8:2'"},
                                                        {"1:8:x1", "'1'"},
                                                        {"1:8:+0", "'0'"},
                                                        {"1,,2", "'1,,2'"},
                                                        {"2,1:4:x2", "'1:4:x2'"},
                                                        {"0:4:+1", "'0'"},
                                                        {"1:1048576:+1", "'1:1048576:+1'"},
                                                        {"99999999999", "'99999999999'"},
                                                        {"", "is missing"}}) {
    try {
      sizes(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--batch"));
      EXPECT_THAT(error.what(), HasSubstr(item));
    }
  }
}

const std::vector<std::string> kSmallSweep = {"sweep", "--model", "tinyllama", "--policy",
                                              "eager,coda"};

CliRun sweep(std::vector<std::string> more) {
  std::vector<std::string> args = kSmallSweep;
  args.insert(args.end(), more.begin(), more.end());
  return cli(args);
}

TEST(Sweep, IsEveryCombinationInTheOrderOfTheLists) {
  const CliRun run = sweep({"--gpu", "h200,h100", "--batch", "2,1", "--seq", "64:128:x2"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  std::vector<std::string> cells;
  for (const std::string& line : lines_of(run.out)) {
    cells.push_back(line.substr(0, line.find(",hierarchy")));
  }
  ASSERT_EQ(cells.size(), 1U + 2 * 2 * 2 * 2);
  EXPECT_THAT(cells[0], HasSubstr("model,gpu,phase,batch,seq,context,dtype,policy"));
  EXPECT_EQ(cells[1], "tinyllama,h200,forward,2,64,0,bf16,eager");
  EXPECT_EQ(cells[2], "tinyllama,h200,forward,2,64,0,bf16,coda");
  EXPECT_EQ(cells[3], "tinyllama,h200,forward,2,128,0,bf16,eager");
  EXPECT_EQ(cells[5], "tinyllama,h200,forward,1,64,0,bf16,eager");
  EXPECT_EQ(cells[9], "tinyllama,h100-sxm,forward,2,64,0,bf16,eager");
}

TEST(Sweep, PredictsWhatPredictPredicts) {
  const CliRun swept = sweep({"--gpu", "h200", "--seq", "64,128"});
  const CliRun one = cli({"predict", "--model", "tinyllama", "--policy", "eager,coda", "--gpu",
                          "h200", "--seq", "128", "--format", "csv"});
  const std::vector<std::string> all = lines_of(swept.out), expected = lines_of(one.out);
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0], expected[0]);
  EXPECT_EQ(all[3], expected[1]);
  EXPECT_EQ(all[4], expected[2]);
}

TEST(Sweep, DecodeBesideForwardTakesTheContexts) {
  const CliRun run = sweep({"--phase", "forward,decode", "--seq", "64", "--context", "128,256"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(",forward,1,64,0,"));
  EXPECT_THAT(run.out, HasSubstr(",decode,1,1,128,"));
  EXPECT_THAT(run.out, HasSubstr(",decode,1,1,256,"));
  EXPECT_EQ(lines_of(run.out).size(), 1U + 2 + 4);
}

TEST(Sweep, JsonHasTheCasesWithoutTheirKernels) {
  const CliRun run = sweep({"--batch", "1,2", "--seq", "64", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("schema"), "fuseline.sweep/1");
  ASSERT_EQ(j.at("cases").size(), 2U);
  EXPECT_EQ(j.at("cases")[1].at("batch"), 2);
  EXPECT_EQ(j.at("cases")[1].at("predictions").size(), 2U);
  EXPECT_FALSE(j.at("cases")[1].at("predictions")[0].contains("kernels"));
}

TEST(Sweep, SpacesWithinANameBelongToIt) {
  const std::string text = read_input_file(data_dir() / "models" / "tinyllama.toml");
  const std::string file = temporary_file("my own model.toml", text);
  const CliRun run = cli({"sweep", "--model", "char-llama , " + file, "--gpu", "h200", "--policy",
                          "coda", "--seq", "64, 128"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(lines_of(run.out).size(), 5U);
  // They do not join numbers either.
  EXPECT_EQ(cli({"sweep", "--batch", "1 2"}).status, 2);
}

// A pipe can be read only once, however many cells the grid has.
TEST(Sweep, ReadsItsScenarioOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text =
      "title = \"t\"\nmodel = \"char-llama\"\ngpu = \"h200\"\npolicies = [\"coda\"]\n";
  ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  const CliRun run = cli({"sweep", "/dev/fd/" + std::to_string(ends[0]), "--seq", "64,128,256"});
  close(ends[0]);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(lines_of(run.out).size(), 4U);
}

TEST(SweepErrors, NameTheItemAndTheSizeOfTheGrid) {
  const auto expect_refused = [](const std::vector<std::string>& more,
                                 const std::vector<std::string>& said) {
    const CliRun run = sweep(more);
    EXPECT_EQ(run.status, 2) << run.out;
    EXPECT_EQ(run.out, "");
    for (const std::string& part : said) EXPECT_THAT(run.err, HasSubstr(part));
  };
  expect_refused({"--gpu", "h200,h2000"}, {"--gpu = 'h2000'", "did you mean 'h200'?"});
  expect_refused({"--phase", "forward,decod"}, {"--phase = 'decod'"});
  expect_refused({"--batch", "1:900:+1", "--seq", "1:900:+1"},
                 {"too large", "900 batches", "900 seqs", "at most 1000000"});
  expect_refused({"--context", "64"}, {"--context", "phase decode"});
  expect_refused({"--format", "table"}, {"--format", "csv, json"});
  expect_refused({"--price-per-hour", "2"}, {"--price-per-hour", "--layers all"});
}

}  // namespace
}  // namespace fuseline
