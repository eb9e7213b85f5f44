#include "gui/model/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "gui/model/glossary.h"
#include "gui/model/hardware_constants.h"
#include "model/policy.h"
#include "tests/cli/cli_run.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string file(const std::vector<ExportFile>& files, const std::string& name) {
  for (const ExportFile& f : files) {
    if (f.name == name) return f.text;
  }
  ADD_FAILURE() << "no file " << name;
  return "{}";
}

TEST(ExportData, PredictionsAreTheCommandLinesText) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const CliRun run = cli({"predict", "--model", "tinyllama", "--gpu", "h200", "--seq", "256",
                          "--policy", "eager,coda", "--format", "json"});
  const auto files = export_data({.results = &results});
  EXPECT_EQ(file(files, "predictions.json"), run.out);
}

TEST(ExportData, MeasuredRunsStandBesideTheirPredictionsAsInTheCommandLine) {
  Document d = default_document();
  d.runs.remove(d.runs.all().back().id);  // coda, measured: the scenario names another folder
  const Results results = test::results_of(d);
  const CliRun run = cli(
      {"predict", "llama2-7b-h200", "--policy", "eager,torch-compile,coda", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(file(export_data({.results = &results}), "predictions.json"), run.out);
}

TEST(ExportData, TheWholeModelIsTheCommandLinesToo) {
  Document d = test::small_document({"eager", "coda"});
  d.layers = std::nullopt;
  const CliRun run = cli({"predict", "--model", "tinyllama", "--gpu", "h200", "--seq", "256",
                          "--policy", "eager,coda", "--layers", "all", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Results results = test::results_of(d);
  EXPECT_EQ(file(export_data({.results = &results}), "predictions.json"), run.out);
}

TEST(FileStems, HoldLettersDigitsAndDashesOnly) {
  EXPECT_EQ(file_stem("eager, measured"), "eager-measured");
  EXPECT_EQ(file_stem("../etc/x"), "etc-x");
  EXPECT_EQ(file_stem("µ"), "run");
  EXPECT_EQ(file_stem("a  b "), "a-b");
}

TEST(ExportData, EveryTableIsWrittenAsCsvAndJsonWithTheSameRows) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const auto files = export_data({.results = &results, .waterfall = waterfall(results.runs[1])});
  std::set<std::string> names;
  for (const ExportFile& f : files) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    if (!f.name.ends_with(".csv")) continue;
    const json j = json::parse(file(files, f.name.substr(0, f.name.size() - 4) + ".json"));
    EXPECT_EQ(j.at("schema"), "fuseline.view/1");
    std::istringstream lines(f.text);
    std::string line;
    std::size_t count = 0;
    while (std::getline(lines, line)) ++count;
    EXPECT_EQ(count, j.at("rows").size() + 1) << f.name;
    EXPECT_GE(j.at("rows").size(), f.name.starts_with("validation") ? 0U : 1U) << f.name;
  }
  for (const char* name :
       {"runs.csv", "traffic-by-kernel.csv", "roofline-l2.json", "timeline.csv", "kernels-coda.csv",
        "graph-eager.json", "memory-coda.csv", "waterfall.csv"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
  }
}

TEST(ExportData, BytesAreIntegersThatEqualTheResults) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const auto files = export_data({.results = &results});
  const json runs = json::parse(file(files, "runs.json")).at("rows");
  const json kernels = json::parse(file(files, "kernels-coda.json")).at("rows");
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(runs[i].at("hbm_read_bytes").is_number_integer());
    EXPECT_EQ(runs[i].at("hbm_read_bytes"), results.runs[i].result->totals.hbm_read.value());
  }
  std::int64_t sum = 0;
  for (const json& k : kernels) {
    ASSERT_TRUE(k.at("hbm_write_bytes").is_number_integer());
    sum += k.at("hbm_write_bytes").get<std::int64_t>();
  }
  EXPECT_EQ(sum, results.runs[1].result->totals.hbm_write.value());
}

TEST(ExportData, NamesOfRunsDoNotReachFileNamesAsTheyAre) {
  Document d = test::small_document({"eager"});
  d.runs.rename(d.runs.all()[0].id, "../../a/b: \"c\"");
  const RunId other = d.runs.add({.name = "a b", .policy = "eager"});
  d.runs.rename(other, "a/b c");
  d.runs.add({.name = "a-b-c", .policy = "eager"});
  const Results results = test::results_of(d);
  std::set<std::string> names;
  for (const ExportFile& f : export_data({.results = &results})) {
    EXPECT_EQ(f.name.find_first_not_of(
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."),
              std::string::npos)
        << f.name;
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
  }
}

TEST(TableText, QuotesWhatNeedsItAndLeavesAbsentValuesOut) {
  const Table t{
      "t", {"a", "b", "c", "d"}, {{std::string("x,\"y\""), std::int64_t{3}, 0.5, Cell()}}};
  EXPECT_EQ(to_csv(t), "a,b,c,d\n\"x,\"\"y\"\"\",3,0.5,\n");
  EXPECT_EQ(json::parse(to_json(t)).at("rows")[0],
            json::parse(R"({"a": "x,\"y\"", "b": 3, "c": 0.5, "d": null})"));
}

TEST(HardwareConstants, EveryNumberHasItsSource) {
  const std::vector<HardwareConstant> all = hardware_constants(load_gpu("h200"));
  EXPECT_GE(all.size(), 21U);
  for (const HardwareConstant& c : all) {
    EXPECT_THAT(c.value, Not(IsEmpty())) << c.key;
    EXPECT_THAT(c.source, Not(IsEmpty())) << c.key;
    EXPECT_EQ(c.date.substr(0, 2), "20") << c.key;
    EXPECT_THAT((std::set<std::string>{"datasheet", "microbenchmark", "derived", "fitted"}),
                ::testing::Contains(c.status))
        << c.key;
  }
  const auto& hbm = *std::ranges::find(all, "hbm_bandwidth", &HardwareConstant::key);
  EXPECT_EQ(details_text(hbm),
            "HBM bandwidth 4800 GB/s: NVIDIA H200 Tensor Core GPU Datasheet, 2023-11 (datasheet)");
}

TEST(Glossary, ExplainsEveryPolicyRewriteAndBoundInOneOrTwoSentences) {
  for (const PolicyInfo& p : policies())
    EXPECT_THAT(explain_term(p.name), Not(IsEmpty())) << p.name;
  for (const std::string& r : rewrite_names()) {
    EXPECT_GT(explain_term(r).size(), std::string("Rewrite: .").size()) << r;
  }
  for (const Bound b :
       {Bound::tensor, Bound::hbm, Bound::l2, Bound::smem, Bound::launch, Bound::sync}) {
    EXPECT_THAT(explain_term(std::string("bound: ") + name_of(b)), Not(IsEmpty()));
  }
  std::set<std::string> names;
  for (const Term& t : glossary()) {
    EXPECT_TRUE(names.insert(t.name).second) << t.name << " is explained twice";
    EXPECT_LE(t.text.size(), 260U) << t.name;
    EXPECT_EQ(t.text.back(), '.') << t.name;
  }
  EXPECT_EQ(explain_term("l2"), explain_term("L2"));
  EXPECT_EQ(explain_term("no such term"), "");
}

}  // namespace
}  // namespace fuseline::gui
