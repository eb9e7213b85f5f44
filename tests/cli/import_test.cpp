// fuseline import, and compare on what it wrote.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "sim/measured/measurement.h"
#include "sim/measured/nsight_csv.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

const std::string kShipped =
    std::string(FUSELINE_SOURCE_DIR) + "/scenarios/measurements/h200-pytorch";

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

// A trace as `ncu --csv --page raw --print-units base` would have printed it, `times` times.
std::string as_raw_page(const MeasuredTrace& trace, int times = 1) {
  std::string text =
      "==PROF== Connected to process 77\n"
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\","
      "\"dram__bytes_read.sum\",\"dram__bytes_write.sum\",\"gpu__time_duration.sum\","
      "\"lts__t_bytes.sum\"\n"
      "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"byte\",\"byte\",\"ns\",\"byte\"\n";
  int id = 0;
  for (int i = 0; i < times; ++i) {
    for (const MeasuredKernel& k : trace.kernels) {
      text += fmt::format("\"{}\",\"77\",{},{},{},\"0\",\"9.0\",\"{}\",\"{}\",\"{:.0f}\",\"{}\"\n",
                          id++, in_quotes(k.kernel), in_quotes(k.block), in_quotes(k.grid),
                          with_commas(k.hbm_read.value()), with_commas(k.hbm_write.value()),
                          k.time.value() * 1e9, with_commas(k.l2.value()));
    }
  }
  return text;
}

MeasuredTrace shipped_trace(const std::string& model, const std::string& execution, Phase phase) {
  for (const MeasuredTrace& t : load_measurements(kShipped).traces) {
    if (t.block.model == model && t.block.execution == execution &&
        t.block.workload.phase == phase && t.block.workload.batch == 1) {
      return t;
    }
  }
  ADD_FAILURE() << "no such trace";
  return {};
}

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              fmt::format("import_{}_{}",
                          testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // `more` comes last, so that it wins over the options before it.
  CliRun import_forward(const std::string& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {"import", file,      "--model",  "llama2-7b",     "--policy",
                                     "eager",  "--phase", "forward",  "--seq",         "2048",
                                     "--gpu",  "h200",    "--output", folder_.string()};
    args.insert(args.end(), more.begin(), more.end());
    return cli(args);
  }
  static std::string file(const std::string& text) {
    return temporary_file(
        std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".csv", text);
  }
  fs::path folder_;
};

TEST_F(ImportTest, ATraceComesBackThroughNsightComputesForm) {
  const MeasuredTrace trace = shipped_trace("llama2-7b", "eager", Phase::forward);
  const CliRun run = import_forward(file(as_raw_page(trace)));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("21 of 21 kernels"), std::string::npos) << run.out;
  expect_fits_100_columns(run.out);

  const Measurements m = load_measurements(folder_.string());
  ASSERT_EQ(m.traces.size(), 1U);
  ASSERT_TRUE(same_case(m.traces[0].block, trace.block));
  ASSERT_EQ(m.traces[0].kernels.size(), trace.kernels.size());
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const MeasuredKernel &a = m.traces[0].kernels[i], &b = trace.kernels[i];
    EXPECT_EQ(a.site, b.site);
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.time, b.time);
    EXPECT_EQ(a.hbm_read, b.hbm_read);
    EXPECT_EQ(a.hbm_write, b.hbm_write);
    EXPECT_EQ(a.l2, b.l2);
  }
}

TEST_F(ImportTest, CompareSaysTheSameOfTheOriginal) {
  const MeasuredTrace trace = shipped_trace("llama2-7b", "eager", Phase::forward);
  ASSERT_EQ(import_forward(file(as_raw_page(trace))).status, 0);
  // Only HBM cases: no block time is known.
  const auto lines = [](const std::string& measurement) {
    const CliRun run =
        cli({"compare", measurement, "--gpu", "h200", "--model", "llama2-7b", "--policy", "eager",
             "--phase", "forward", "--batch", "1", "--seq", "2048", "--format", "csv"});
    EXPECT_EQ(run.status, 0) << run.err;
    return lines_of(run.out);
  };
  const std::vector<std::string> imported = lines(folder_.string());
  EXPECT_GE(imported.size(), 5U);
  // Away from the constants without a model, which would add a column.
  std::ifstream in(kShipped + "/kernels.csv");
  std::stringstream original;
  original << in.rdbuf();
  EXPECT_EQ(imported, lines(temporary_file("kernels.csv", original.str())));
}

TEST_F(ImportTest, DecodeKeepsWhatLibrariesAdd) {
  const MeasuredTrace trace = shipped_trace("llama2-7b", "eager", Phase::decode);
  const CliRun run = import_forward(file(as_raw_page(trace)),
                                    {"--phase", "decode", "--seq", "1", "--context", "2048"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Measurements m = load_measurements(folder_.string());
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    EXPECT_EQ(m.traces.at(0).kernels.at(i).site, trace.kernels[i].site);
  }
}

TEST_F(ImportTest, TheLastOfSeveralReplaysIsTaken) {
  const MeasuredTrace trace = shipped_trace("llama2-7b", "eager", Phase::forward);
  std::string text = as_raw_page(trace, 3);
  const CliRun run = import_forward(file(text));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("3 repetitions of 21"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("from line 46 of"), std::string::npos) << run.out;  // 3 + 2 * 21 + 1
  EXPECT_EQ(load_measurements(folder_.string()).traces.at(0).kernels.size(), 21U);
}

TEST_F(ImportTest, SkipAndCountChooseKernels) {
  const MeasuredTrace trace = shipped_trace("llama2-7b", "eager", Phase::forward);
  const std::string raw = file(as_raw_page(trace, 2));
  const CliRun run = import_forward(raw, {"--skip", "1", "--count", "2"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("not those of the 21"), std::string::npos) << run.err;
  const Measurements m = load_measurements(folder_.string());
  ASSERT_EQ(m.traces.at(0).kernels.size(), 2U);
  EXPECT_EQ(m.traces[0].kernels[0].kernel, trace.kernels[1].kernel);

  fs::remove_all(folder_);
  EXPECT_EQ(import_forward(raw, {"--skip", "42"}).status, 2);
  EXPECT_EQ(import_forward(raw, {"--skip", "41", "--count", "2"}).status, 2);
  EXPECT_EQ(import_forward(raw, {"--count", "0"}).status, 2);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(ImportTest, MetaIsWrittenAndItsGapsAreNamed) {
  const std::string raw = file(as_raw_page(shipped_trace("llama2-7b", "eager", Phase::forward)));
  const CliRun run = import_forward(raw, {"--device", "NVIDIA H200", "--driver", "580", "--toolkit",
                                          "CUDA 13.0", "--title", "mine"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("not recorded: --date, --clocks"), std::string::npos) << run.err;
  const MeasurementMeta meta = load_measurements(folder_.string()).meta;
  EXPECT_EQ(meta.gpu, "h200");
  EXPECT_EQ(meta.driver, "580");
  EXPECT_EQ(meta.title, "mine");
  EXPECT_EQ(meta.counters, "Nsight Compute");
}

TEST_F(ImportTest, AnotherGpuIsNoticed) {
  const std::string raw = file(as_raw_page(shipped_trace("llama2-7b", "eager", Phase::forward)));
  const CliRun run = import_forward(raw, {"--gpu", "a100"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("compute capability 9.0"), std::string::npos) << run.err;
}

TEST_F(ImportTest, OwnTablesAreSelectedFrom) {
  const CliRun run = cli(
      {"import", kShipped + "/kernels.csv", "--model", "gpt2-xl", "--output", folder_.string()});
  ASSERT_EQ(run.status, 0) << run.err;
  const Measurements m = load_measurements(folder_.string());
  EXPECT_EQ(m.traces.size(), 1U);
  EXPECT_EQ(m.meta.driver, "580");  // from meta.toml beside the table
  EXPECT_EQ(cli({"import", kShipped + "/kernels.csv", "--model", "gpt9", "--output",
                 folder_.string(), "--replace"})
                .status,
            2);
  EXPECT_EQ(cli({"import", kShipped + "/kernels.csv", "--skip", "3", "--output", folder_.string(),
                 "--replace"})
                .status,
            2);
}

TEST_F(ImportTest, AFolderIsExtendedWhenAsked) {
  const std::string raw = file(as_raw_page(shipped_trace("llama2-7b", "eager", Phase::forward)));
  ASSERT_EQ(import_forward(raw).status, 0);
  EXPECT_EQ(import_forward(raw).status, 2);
  ASSERT_EQ(import_forward(raw, {"--seq", "1024", "--extend"}).status, 0);
  EXPECT_EQ(load_measurements(folder_.string()).traces.size(), 2U);
  ASSERT_EQ(import_forward(raw, {"--replace"}).status, 0);
  EXPECT_EQ(load_measurements(folder_.string()).traces.size(), 1U);
  EXPECT_EQ(import_forward(raw, {"--replace", "--extend"}).status, 2);
}

TEST_F(ImportTest, RefusesWithExitTwoAndWritesNothing) {
  const std::string raw = file(as_raw_page(shipped_trace("llama2-7b", "eager", Phase::forward)));
  const std::string out = folder_.string();
  struct Refused {
    std::vector<std::string> args;
    const char* says;
  };
  const std::vector<std::string> block = {"--model", "llama2-7b", "--policy", "eager",
                                          "--phase", "forward",   "--seq",    "2048",
                                          "--gpu",   "h200",      "--output", out};
  const auto with_block = [&](const std::string& first) {
    std::vector<std::string> args = {"import", first};
    args.insert(args.end(), block.begin(), block.end());
    return args;
  };
  std::string no_metric = as_raw_page(shipped_trace("llama2-7b", "eager", Phase::forward));
  no_metric.replace(no_metric.find("dram__bytes_write.sum"), 21, "dram__bytes_wrote.sum");
  std::string no_unit = as_raw_page(shipped_trace("llama2-7b", "eager", Phase::forward));
  no_unit.replace(no_unit.find("\"ns\""), 4, "\"beats\"");
  for (const Refused& r :
       {Refused{{"import"}, "FILE: is missing"}, Refused{{"import", raw}, "--output: is missing"},
        Refused{{"import", raw, "--output", out}, "--model: is missing"},
        Refused{{"import", raw, "--output", out, "--model", "llama2-7b", "--gpu", "h200",
                 "--policy", "eager", "--phase", "decode"},
                "--context: is missing"},
        Refused{{"import", raw, "--output", out, "--model", "llama2-7b", "--gpu", "h200",
                 "--policy", "eager,coda", "--phase", "forward", "--seq", "2048"},
                "one policy"},
        Refused{with_block("/no/such/raw.csv"), "/no/such/raw.csv"},
        Refused{with_block(std::string(FUSELINE_SOURCE_DIR) + "/README.md"), "no table of kernels"},
        Refused{with_block(temporary_file("import_metric.csv", no_metric)),
                "--metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
                "lts__t_bytes.sum"},
        Refused{with_block(temporary_file("import_unit.csv", no_unit)), "'beats'"}}) {
    const CliRun run = cli(r.args);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_NE(run.err.find(r.says), std::string::npos) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_FALSE(fs::exists(folder_)) << run.err;
  }
}

// The collection scripts turn the same output into the same table.
TEST_F(ImportTest, AgreesWithTheCollectionScript) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "no python3 here";
  const MeasuredTrace trace = shipped_trace("llama2-7b", "eager", Phase::forward);
  std::string text = as_raw_page(trace);
  // NVTX ranges instead of process numbers, and the marker kernel that begins a block.
  const std::string column = "Push/Pop_Range:Msg";
  text.replace(text.find("Process ID"), 10, column);
  text.insert(text.find("\"0\",\"77\""),
              "\"9\",\"\",\"bitwise_not\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"0\",\"9.0\",\"1\",\"1\","
              "\"1\",\"1\"\n");
  const std::string range =
      "\"1 \"\"<default domain>:cfg=llama2-7b~eager~forward~1~2048~0:none\"\" "
      "\"\"<default domain>:op=SITE:none\"\"\"";
  std::size_t at = 0;
  for (const MeasuredKernel& k : trace.kernels) {
    at = text.find("\"77\"", at);
    std::string mine = range;
    mine.replace(mine.find("SITE"), 4, k.site);
    text.replace(at, 4, mine);
  }
  const std::string raw = file(text), table = raw + ".kernels.csv";
  const std::string script =
      fmt::format("python3 '{}/cuda/rivals/ncu_to_kernels.py' '{}' --out '{}' >/dev/null",
                  FUSELINE_SOURCE_DIR, raw, table);
  ASSERT_EQ(std::system(script.c_str()), 0);
  const CliRun run = import_forward(raw);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("1 marker kernel is"), std::string::npos) << run.err;

  const MeasuredTrace theirs = load_measurements(table).traces.at(0);
  const MeasuredTrace ours = load_measurements(folder_.string()).traces.at(0);
  ASSERT_EQ(ours.kernels.size(), theirs.kernels.size());
  for (std::size_t i = 0; i < ours.kernels.size(); ++i) {
    EXPECT_EQ(ours.kernels[i].site, theirs.kernels[i].site);
    EXPECT_EQ(ours.kernels[i].kernel, theirs.kernels[i].kernel);
    EXPECT_EQ(ours.kernels[i].grid, theirs.kernels[i].grid);
    EXPECT_EQ(ours.kernels[i].block, theirs.kernels[i].block);
    EXPECT_EQ(ours.kernels[i].time, theirs.kernels[i].time);
    EXPECT_EQ(ours.kernels[i].hbm_read, theirs.kernels[i].hbm_read);
    EXPECT_EQ(ours.kernels[i].l2, theirs.kernels[i].l2);
  }
}

}  // namespace
}  // namespace fuseline
