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
#include "sim/traces/kernel_alignment.h"
#include "sim/traces/repeats.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
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

// One launch of a made trace; times in µs.
struct Made {
  std::string name, grid = "(1, 1, 1)";
  double begin = 0, duration = 1;
};

// A model of `layers` equal blocks between an embedding and a head, run `times` times; launches
// follow each other after 1 µs. Run r takes 1 + r / 100 times as long, so that the median is known.
std::vector<Made> model_run(const MeasuredTrace& block, int layers, int times) {
  std::vector<Made> out;
  double now = 1000;
  const auto launch = [&](const std::string& name, const std::string& grid, double us) {
    out.push_back({name, grid.empty() ? "(1, 1, 1)" : grid, now, us});
    now += us + 1;
  };
  for (int run = 0; run < times; ++run) {
    const double slower = 1 + run / 100.0;
    launch("void at::native::vectorized_gather_kernel<16, long>(char*, char*)", "", 3);
    for (int layer = 0; layer < layers; ++layer)
      for (const MeasuredKernel& k : block.kernels)
        launch(k.kernel, k.grid, to_us(k.time) * slower);
    launch("nvjet_sm90_tst_head_of_the_model", "(2, 66, 1)", 400);
    launch("[CUDA memcpy Device-to-Host]", "", 2);
    now += 5000;
  }
  return out;
}

json edges(const std::string& triple) {
  json out = json::array();
  std::string digits;
  for (const char c : triple) {
    if (c >= '0' && c <= '9') digits += c;
    if ((c == ',' || c == ')') && !digits.empty()) {
      out.push_back(std::stoi(digits));
      digits.clear();
    }
  }
  return out;
}

// As torch.profiler writes it, with what it also holds.
std::string as_kineto(const std::vector<Made>& launches) {
  json events = json::array();
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"args", {{"name", "python"}}}});
  events.push_back({{"ph", "X"},
                    {"cat", "cpu_op"},
                    {"name", "aten::linear"},
                    {"ts", 990.5},
                    {"dur", 12.25},
                    {"args", {{"Input Dims", {{1, 2}, {3}}}, {"device", 7}}}});
  for (const Made& m : launches) {
    const bool memory = m.name.find("memcpy") != std::string::npos;
    events.push_back({{"ph", "X"},
                      {"cat", memory ? "gpu_memcpy" : "kernel"},
                      {"name", m.name},
                      {"pid", 0},
                      {"tid", 7},
                      {"ts", m.begin},
                      {"dur", m.duration},
                      {"args",
                       {{"device", 0},
                        {"stream", 7},
                        {"grid", edges(m.grid)},
                        {"block", {128, 1, 1}},
                        {"est. achieved occupancy %", 40}}}});
  }
  // The profiler writes in no order of time.
  std::reverse(events.begin(), events.end());
  return json{{"schemaVersion", 1},
              {"deviceProperties", {{{"id", 0}, {"name", "NVIDIA H200"}, {"numSms", 132}}}},
              {"traceEvents", events},
              {"displayTimeUnit", "ms"}}
      .dump();
}

std::string as_nsys_csv(const std::vector<Made>& launches) {
  std::string out =
      "Processing [made.sqlite] with [cuda_gpu_trace.py]...\n\n"
      "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem "
      "(MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n";
  for (const Made& m : launches) {
    const json g = edges(m.grid);
    const bool memory = m.name.find("memcpy") != std::string::npos;
    std::string name = m.name;
    for (std::size_t at = 0; (at = name.find('"', at)) != std::string::npos; at += 2)
      name.insert(at, "\"");
    out += fmt::format(
        "{:.0f},{:.0f},1,{},{}NVIDIA H200 (0),1,,7,\"{}\"\n", m.begin * 1e3, m.duration * 1e3,
        memory ? std::string(",,,,")
               : fmt::format("{},{},{},128,1", g[0].get<int>(), g[1].get<int>(), g[2].get<int>()),
        memory ? ",,,,2.000,8.000,Device,Pageable," : "1,96,0.000,0.200,,,,,", name);
  }
  return out;
}

// Empty where python3 has no sqlite3 module.
std::string as_nsys_sqlite(const std::vector<Made>& launches, const std::string& name) {
  std::string sql =
      "BEGIN; CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
      "contextId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER, "
      "shortName "
      "INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, "
      "blockZ "
      "INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, "
      "streamId INTEGER, bytes INTEGER);";
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Made& m = launches[i];
    const json g = edges(m.grid);
    // A clock of nanoseconds since 1970: a double would lose its last digits.
    const std::int64_t begin = 1'760'000'000'123'456'789 + std::llround(m.begin * 1e3),
                       end = begin + std::llround(m.duration * 1e3);
    if (m.name.find("memcpy") != std::string::npos) {
      sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {}, 0, 7, 100);",
                         begin, end);
      continue;
    }
    std::string quoted = m.name;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 2)
      quoted.insert(at, "'");
    sql += fmt::format(
        "INSERT INTO StringIds VALUES ({0}, '{1}'); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
        "({2}, {3}, 0, 1, 7, {0}, {0}, {0}, {4}, {5}, {6}, 128, 1, 1);",
        i + 1, quoted, begin, end, g[0].get<int>(), g[1].get<int>(), g[2].get<int>());
  }
  const std::string path = temporary_file(name, "");
  fs::remove(path);
  std::ofstream(path + ".sql") << sql << "COMMIT;";
  const std::string command =
      "python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
      "d.executescript(open(sys.argv[1] + \".sql\").read()); d.close()' " +
      path;
  return std::system(command.c_str()) == 0 ? path : std::string();
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
  const std::vector<Made> launches = model_run(t, 3, 2);
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

TEST(Repeats, AreFoundWhereverTheyBegin) {
  const std::vector<std::uint32_t> launches = {9, 1, 2, 2, 3, 1, 2, 2, 3, 1, 2, 2, 3, 8, 7};
  const std::vector<Repeat> found = find_repeats(launches, 100, 5);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].begin, 1U);
  EXPECT_EQ(found[0].length, 4U);
  EXPECT_EQ(found[0].covered, 12U);
  const std::vector<std::uint32_t> list = {2, 3, 1, 2};
  EXPECT_EQ(occurrences(launches, list), (std::vector<std::size_t>{3, 7}));
  EXPECT_TRUE(find_repeats(std::vector<std::uint32_t>{1, 2, 3, 4}, 100, 5).empty());
  EXPECT_TRUE(find_repeats({}, 100, 5).empty());
}

TEST(KernelAlignment, AProductThatCameLaterIsFoundByItsTime) {
  const std::vector<PlannedKernel> planned = {
      {KernelKind::gemm, {"d_weight", "gemm"}, microseconds(300)},
      {KernelKind::gemm, {"d_input", "gemm"}, microseconds(100)},
      {KernelKind::pointwise, {"add"}, microseconds(10)}};
  const std::vector<SeenLaunch> launches = {
      {"nvjet_sm90_tst_1", microseconds(104)},
      {"vectorized_elementwise_kernel<8, CUDAFunctor_add<c10::BFloat16>>", microseconds(11)},
      {"nvjet_sm90_tst_2", microseconds(290)}};
  const KernelAlignment found = align_launches(launches, planned);
  EXPECT_EQ(found.launches[0].planned, 1U);
  EXPECT_EQ(found.launches[1].planned, 2U);
  EXPECT_EQ(found.launches[1].by, MatchedBy::name);
  EXPECT_EQ(found.launches[2].planned, 0U);
  EXPECT_EQ(found.launches[2].by, MatchedBy::time);
}

TEST(KernelAlignment, NeverTakesAProductForAnythingElse) {
  const std::vector<PlannedKernel> planned = {{KernelKind::norm, {"rms_norm"}, microseconds(10)}};
  const std::vector<SeenLaunch> launches = {{"nvjet_sm90_tst_1", microseconds(10)},
                                            {"flash_fwd_kernel", microseconds(10)}};
  for (const LaunchMatch& m : align_launches(launches, planned).launches) EXPECT_FALSE(m.planned);
  EXPECT_EQ(kind_of_launch("triton_poi_fused__scaled_dot_product_cudnn_attention_view_1"),
            KernelKind::pointwise);
  EXPECT_EQ(kind_of_launch("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"),
            KernelKind::gemm);
  EXPECT_EQ(kind_of_launch("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits>"),
            KernelKind::attention);
}

}  // namespace
}  // namespace fuseline
