// fuseline import trace. The traces are made here of launches that were measured
// (scenarios/measurements): the tables there say which operator each launch was, and the import has
// to find it out again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/measured/measurement.h"
#include "tests/cli/cli_run.h"
#include "tests/cli/made_traces.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::as_kineto;
using test::as_nsys_csv;
using test::as_nsys_sqlite;
using test::model_run;
using ::testing::HasSubstr;

std::vector<MeasuredTrace> shipped_traces(const std::string& folder) {
  return load_measurements(std::string(FUSELINE_SOURCE_DIR) + "/scenarios/measurements/" + folder)
      .traces;
}

MeasuredTrace the_trace(const std::string& model, const std::string& execution, Phase phase) {
  for (const MeasuredTrace& t : shipped_traces("h200-pytorch"))
    if (t.block.model == model && t.block.execution == execution &&
        t.block.workload.phase == phase && t.block.workload.batch == 1)
      return t;
  ADD_FAILURE() << "no such trace";
  return {};
}

std::vector<std::string> words_of(const BlockCase& b, const std::string& file) {
  std::vector<std::string> args = {"import",
                                   "trace",
                                   file,
                                   "--model",
                                   b.model,
                                   "--gpu",
                                   "h200",
                                   "--phase",
                                   name_of(b.workload.phase),
                                   "--batch",
                                   std::to_string(b.workload.batch),
                                   "--seq",
                                   std::to_string(b.workload.seq)};
  if (b.workload.phase == Phase::decode)
    args.insert(args.end(), {"--context", std::to_string(b.workload.context)});
  return args;
}

CliRun import_block(const BlockCase& b, const std::string& file,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = words_of(b, file);
  args.insert(args.end(), more.begin(), more.end());
  return cli(args);
}

json imported(const BlockCase& b, const std::string& file,
              const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"--format", "json"};
  all.insert(all.end(), more.begin(), more.end());
  const CliRun run = import_block(b, file, all);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? json::parse(run.out) : json::object();
}

TEST(ImportTrace, FindsThePolicyAndTheBlocksOfAModel) {
  for (const MeasuredTrace& t : shipped_traces("h200-pytorch")) {
    if (t.block.workload.phase == Phase::train) continue;
    const std::string label = t.block.label();
    const json found =
        imported(t.block, temporary_file("model.json", as_kineto(model_run(t, 4, 3))));
    EXPECT_EQ(found["policy"], t.block.execution) << label;
    EXPECT_TRUE(found["policy_chosen"]) << label;
    EXPECT_EQ(found["repetitions"], 12) << label;
    EXPECT_EQ(found["device"], "NVIDIA H200") << label;
    EXPECT_EQ(found["launches"].size(), t.kernels.size()) << label;
    double whole = 0;
    for (const MeasuredKernel& k : t.kernels) whole += to_us(k.time);
    // Of runs that take 1, 1.01 and 1.02 times as long, the median is the second.
    EXPECT_NEAR(found["busy"]["time_us"].get<double>(), 1.01 * whole, 1e-3 * whole) << label;
    EXPECT_NEAR(found["span"]["time_us"].get<double>(),
                1.01 * whole + static_cast<double>(t.kernels.size()) - 1, 1e-3 * whole)
        << label;
    double unmatched = 0;
    for (const json& u : found["unmatched"]) unmatched += u["time_us"].get<double>();
    EXPECT_LT(unmatched, 0.02 * whole) << label;
  }
}

// The tables say of eager's launches which step of the block each was.
TEST(ImportTrace, GivesEveryLaunchTheStepThatItWas) {
  std::size_t launches = 0;
  for (const MeasuredTrace& t : shipped_traces("h200-pytorch")) {
    if (t.block.workload.phase == Phase::train || t.kernels.front().site.empty()) continue;
    const fs::path folder = fs::path(testing::TempDir()) / "steps_of_a_trace";
    fs::remove_all(folder);
    const std::string file = temporary_file("steps.json", as_kineto(model_run(t, 2, 2)));
    const CliRun run =
        import_block(t.block, file, {"--policy", t.block.execution, "--output", folder.string()});
    ASSERT_EQ(run.status, 0) << run.err;
    const Measurements m = load_measurements(folder.string());
    ASSERT_EQ(m.traces.size(), 1U);
    ASSERT_EQ(m.traces[0].kernels.size(), t.kernels.size()) << t.block.label();
    for (std::size_t i = 0; i < t.kernels.size(); ++i, ++launches) {
      EXPECT_EQ(m.traces[0].kernels[i].site, t.kernels[i].site)
          << t.block.label() << " launch " << i << ": " << t.kernels[i].kernel;
      EXPECT_EQ(m.traces[0].kernels[i].grid, t.kernels[i].grid);
    }
    fs::remove_all(folder);
  }
  EXPECT_GT(launches, 100U);
}

TEST(ImportTrace, AllFormsOfOneTraceSayTheSame) {
  const MeasuredTrace t = the_trace("llama2-7b", "torch-compile", Phase::decode);
  const std::vector<test::MadeLaunch> launches = model_run(t, 3, 2);
  const std::string kineto = temporary_file("one.json", as_kineto(launches));
  const json first = imported(t.block, kineto);
  ASSERT_EQ(std::system(("gzip -kf " + kineto).c_str()), 0);
  std::vector<std::string> others = {kineto + ".gz",
                                     temporary_file("one.csv", as_nsys_csv(launches)),
                                     as_nsys_sqlite(launches, "one.sqlite")};
  if (others.back().empty()) others.pop_back();
  for (const std::string& file : others) {
    const json other = imported(t.block, file);
    for (const char* key : {"policy", "repetitions", "device"})
      EXPECT_EQ(other[key], first[key]) << file;
    ASSERT_EQ(other["launches"].size(), first["launches"].size()) << file;
    for (std::size_t i = 0; i < first["launches"].size(); ++i) {
      EXPECT_EQ(other["launches"][i]["kernel"], first["launches"][i]["kernel"]) << file;
      EXPECT_EQ(other["launches"][i]["grid"], first["launches"][i]["grid"]) << file;
      EXPECT_NEAR(other["launches"][i]["time_us"].get<double>(),
                  first["launches"][i]["time_us"].get<double>(), 2e-3)
          << file;
    }
  }
}

TEST(ImportTrace, CountersOfNsightComputeAreDividedAmongTensors) {
  const BlockCase block{.model = "gpt2-xl",
                        .execution = "eager",
                        .workload = {.phase = Phase::forward, .batch = 1, .seq = 2048}};
  const json found = imported(block, std::string(FUSELINE_SOURCE_DIR) + "/docs/nsight-compute.csv");
  EXPECT_EQ(found["policy"], "eager");
  EXPECT_EQ(found["repetitions"], 1);
  EXPECT_FALSE(found.contains("busy"));  // the tool runs each kernel alone
  std::int64_t of_kernels = 0, of_tensors = 0;
  for (const json& k : found["kernels"])
    of_kernels +=
        k["hbm_read_bytes"].get<std::int64_t>() + k["hbm_write_bytes"].get<std::int64_t>();
  for (const json& t : found["tensors"])
    of_tensors +=
        t["hbm_read_bytes"].get<std::int64_t>() + t["hbm_write_bytes"].get<std::int64_t>();
  EXPECT_EQ(of_kernels, 249'510'400);  // as `fuseline import` says of this file
  EXPECT_NEAR(static_cast<double>(of_tensors), static_cast<double>(of_kernels), 100.0);
}

TEST(ImportTrace, WritesAFolderThatCompareReads) {
  const MeasuredTrace t = the_trace("llama2-7b", "eager", Phase::forward);
  const fs::path folder = fs::path(testing::TempDir()) / "folder_of_a_trace";
  fs::remove_all(folder);
  const std::string file = temporary_file("folder.json", as_kineto(model_run(t, 2, 2)));
  const CliRun run =
      import_block(t.block, file, {"--output", folder.string(), "--driver", "580.159.04"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  EXPECT_THAT(run.err, HasSubstr("note: not recorded: --toolkit, --date, --clocks"));
  const Measurements m = load_measurements(folder.string());
  EXPECT_EQ(m.meta.device, "NVIDIA H200");
  ASSERT_EQ(m.blocks.size(), 1U);
  EXPECT_EQ(m.blocks[0].timer, "trace");
  EXPECT_EQ(m.traces.at(0).kernels.at(0).hbm_read, Bytes(0));  // nobody counted
  const CliRun compared = cli({"compare", folder.string(), "--kernels"});
  ASSERT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("block time"));
  EXPECT_THAT(compared.out, HasSubstr("kernel time"));
  EXPECT_THAT(compared.out, ::testing::Not(HasSubstr("HBM bytes per")));
  // The folder is there now.
  const CliRun again = import_block(t.block, file, {"--output", folder.string()});
  EXPECT_EQ(again.status, 2);
  fs::remove_all(folder);
}

// Weights' gradients come last, whatever the plan says; a kernel that no plan has is named.
TEST(ImportTrace, SaysWhatItCouldNotMatch) {
  MeasuredTrace t = the_trace("llama2-7b", "torch-compile", Phase::forward);
  MeasuredKernel stranger;
  stranger.kernel = "void my_team::watermark_kernel(float*)";
  stranger.time = microseconds(50);
  t.kernels.insert(t.kernels.begin() + 4, stranger);
  const std::string file = temporary_file("stranger.json", as_kineto(model_run(t, 3, 1)));
  const json found = imported(t.block, file);
  EXPECT_EQ(found["policy"], "torch-compile");
  ASSERT_EQ(found["unmatched"].size(), 1U);
  EXPECT_EQ(found["unmatched"][0]["name"], "my_team::watermark_kernel(float*)");
  EXPECT_NEAR(found["unmatched"][0]["time_us"].get<double>(), 50, 1e-6);
  EXPECT_NEAR(found["unmatched"][0]["share"].get<double>(),
              50 / found["busy"]["time_us"].get<double>(), 1e-9);
  const CliRun run = import_block(t.block, file);
  EXPECT_THAT(run.out, HasSubstr("in the block, and no kernel of the plan"));
  EXPECT_THAT(run.out, HasSubstr("policy torch-compile matches best"));
  EXPECT_THAT(run.out, HasSubstr("outside of these blocks"));
}

struct Hostile {
  const char* name;
  std::string text;
  const char* message;
};

TEST(ImportTrace, RefusesHostileFilesWithOneMessage) {
  const auto event = [](const std::string& fields) {
    return "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", " + fields + "}]}";
  };
  const std::string whole = as_kineto({{"k", "(1, 1, 1)", 1, 2}});
  const std::vector<Hostile> files = {
      {"cut.json", whole.substr(0, whole.size() / 2), "JSON syntax error"},
      {"deep.json", "{\"traceEvents\": " + std::string(1'000'000, '['), "nested too deeply"},
      {"none.json", "{\"traceEvents\": []}", "no kernel of a GPU is in the file"},
      {"other.json", "{\"hello\": [1, 2]}", "the JSON holds no trace events"},
      {"types.json", "{\"traceEvents\": {\"ph\": 3}}", "no kernel of a GPU is in the file"},
      {"name.json", event("\"name\": 7, \"ts\": 1, \"dur\": 2"), "event 1, name: is empty"},
      {"text.json", event("\"name\": \"k\", \"ts\": 1, \"dur\": \"long\""),
       "event 1, duration = 'nan s': is no duration of a launch"},
      {"minus.json", event("\"name\": \"k\", \"ts\": 1, \"dur\": -5"),
       "is no duration of a launch"},
      {"huge.json", event("\"name\": \"k\", \"ts\": 1e300, \"dur\": 1"), "is no time"},
      {"number.json", event("\"name\": \"k\", \"ts\": 1e999, \"dur\": 1"), "is too large"},
      {"empty.json", "", "is empty"},
      {"words.txt", "what is this?", "is no trace that is read here"},
      {"bytes.bin", std::string("\x00\xFF\x13\x37", 4), "is no trace that is read here"},
      {"cut.gz", std::string("\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\x03\x4B", 11), "cut off"},
      {"bad.sqlite", std::string("SQLite format 3\0garbage", 23), "the database cannot be read"},
      {"cells.csv", "Start (ns),Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Strm,Name\n1,2,1,1,1\n",
       "cells.csv:2: the line has 5 cells"},
      {"letters.csv",
       "Start (ns),Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Strm,Name\n1,two,1,1,1,1,1,1,7,k\n",
       "letters.csv:2: Duration (ns) = 'two': is not a number"},
      {"run.nsys-rep", "the tool's own form", "nsys export --type sqlite"},
      {"no-metrics.csv", "\"ID\",\"Kernel Name\"\n\"0\",\"k\"\n", "the metric was not collected"},
  };
  const BlockCase block{.model = "tinyllama",
                        .execution = "eager",
                        .workload = {.phase = Phase::forward, .batch = 1, .seq = 64}};
  for (const Hostile& f : files) {
    const fs::path folder = fs::path(testing::TempDir()) / "never_written";
    const CliRun run = import_block(block, temporary_file(f.name, f.text),
                                    {"--policy", "eager", "--output", folder.string()});
    EXPECT_EQ(run.status, 2) << f.name << ": " << run.out << run.err;
    EXPECT_THAT(run.err, HasSubstr(f.message)) << f.name;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << f.name << ": " << run.err;
    EXPECT_EQ(run.out, "") << f.name;
    EXPECT_FALSE(fs::exists(folder)) << f.name;
  }
}

TEST(ImportTrace, AGraphThatWasRecordedAsAWholeIsNamed) {
  const std::string path = temporary_file("graph.sqlite", "");
  fs::remove(path);
  const std::string command =
      "python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute(\"CREATE TABLE "
      "CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER)\"); d.close()' " +
      path;
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "python3 has no sqlite3 module";
  const BlockCase block{.model = "tinyllama",
                        .execution = "eager",
                        .workload = {.phase = Phase::forward, .batch = 1, .seq = 64}};
  const CliRun run = import_block(block, path);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--cuda-graph-trace node"));
}

TEST(ImportTrace, AsksForWhatTheFileDoesNotSay) {
  const std::string file = temporary_file("ask.json", as_kineto({{"k", "(1, 1, 1)", 1, 2}}));
  const auto refused = [&](const std::vector<std::string>& words) {
    std::vector<std::string> args = {"import", "trace"};
    args.insert(args.end(), words.begin(), words.end());
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2);
    return run.err;
  };
  EXPECT_THAT(refused({}), HasSubstr("FILE: is missing"));
  EXPECT_THAT(refused({file}), HasSubstr("--model: is missing"));
  EXPECT_THAT(refused({file, "--model", "tinyllama"}), HasSubstr("--gpu: is missing"));
  EXPECT_THAT(refused({file, "--model", "tinyllama", "--gpu", "h200", "--phase", "decode"}),
              HasSubstr("--context: is missing"));
  EXPECT_THAT(refused({file, "--model", "tinyllama", "--gpu", "h200", "--phase", "forward", "--seq",
                       "64", "--policy", "eagre"}),
              HasSubstr("did you mean 'eager'"));
}

}  // namespace
}  // namespace fuseline
