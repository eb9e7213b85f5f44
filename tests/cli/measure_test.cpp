// fuseline measure as far as a machine without a GPU goes; tests/cuda/run has the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/measure_output.h"
#include "cuda/run/known_gpu.h"
#include "sim/measured/measurement_table.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

TEST(Measure, WithoutAGpuSaysWhatIsMissing) {
  try {
    (void)cuda::device_here();
    GTEST_SKIP() << "there is a GPU";
  } catch (const MissingError&) {
  }
  const CliRun run = cli({"measure", "--model", "llama2-7b"});
  EXPECT_EQ(run.status, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, AnyOf(HasSubstr("no NVIDIA driver"), HasSubstr("without the CUDA toolkit"),
                             HasSubstr("no GPU")));
  EXPECT_FALSE(std::filesystem::exists("measured-llama2-7b-forward"));
}

struct Refused {
  std::vector<std::string> args;
  std::string message;
};
class MeasureRefuses : public testing::TestWithParam<Refused> {};

// Wrong input is told before the GPU is asked for.
TEST_P(MeasureRefuses, WithStatus2) {
  std::vector<std::string> args = {"measure"};
  args.insert(args.end(), GetParam().args.begin(), GetParam().args.end());
  const CliRun run = cli(args);
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, MeasureRefuses,
    testing::Values(Refused{{"--model", "llama2-7bx"}, "did you mean 'llama2-7b'"},
                    Refused{{"--policy", "codda"}, "did you mean 'coda'"},
                    Refused{{"--dtype", "fp32"}, "has no kernels"},
                    Refused{{"--replays", "0"}, "--replays"},
                    Refused{{"--check", "ful"}, "did you mean 'full'"},
                    Refused{{"--extend", "--replace"}, "contradicts --extend"},
                    Refused{{"--output", "scenarios/measurements/h200-pytorch"}, "h200-pytorch"},
                    Refused{{"--format", "xml"}, "--format"},
                    Refused{{"--rounds", "0"}, "--rounds"},
                    Refused{{"--rounds", "101"}, "--rounds"},
                    Refused{{"--attention", "cudn"}, "did you mean 'cudnn'"},
                    Refused{{"--launch", "stream"}, "graph, overlap"},
                    Refused{{"--launch", "overlpa"}, "did you mean 'overlap'"},
                    Refused{{"--launch", "overlap", "--ampere"}, "Ampere's kernels"},
                    Refused{{"--rivals", "torch-compil"}, "did you mean 'torch-compile'"},
                    Refused{{"--rivals", "eager,eager"}, "--rivals"},
                    Refused{{"--rivals", "eager", "--dtype", "fp16"}, "rivals compute in"},
                    Refused{{"--rival-command", "true"}, "starts nothing without --rivals"}));

// A plan of a file stands beside policies, in turns with them, and is checked at its own sizes.
TEST(Measure, RefusesAPlanOfAnotherBlockOrOneThatAPolicyIsAlready) {
  const std::string file = temporary_file("measured-plan.fuse", "");
  ASSERT_EQ(cli({"explain", "--model", "char-llama", "--gpu", "h200", "--seq", "32", "--policy",
                 "coda", "--format", "program", "--output", file})
                .status,
            0);
  const std::vector<std::string> same = {"measure", "--model", "char-llama", "--gpu", "h200",
                                         "--seq",   "32",      "--plan",     file};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> args = same;
    args.insert(args.end(), more.begin(), more.end());
    return cli(args);
  };
  EXPECT_THAT(with({"--policy", "per-operator,coda"}).err, HasSubstr("--policy names too"));
  EXPECT_THAT(with({"--check", "small"}).err, HasSubstr("plans of other sizes"));
  EXPECT_EQ(with({"--check", "small"}).status, 2);
  const CliRun other = cli({"measure", "--model", "char-llama", "--gpu", "h200", "--seq", "48",
                            "--plan", file, "--policy", "per-operator"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("another block"));
}

// The script is looked for beside the data files.
TEST(Measure, RivalsNeedTheirScript) {
  const auto data = std::filesystem::path(testing::TempDir()) / "measure_without_script" / "data";
  std::filesystem::create_directories(data);
  for (const auto& entry : std::filesystem::directory_iterator(FUSELINE_SOURCE_DIR "/scenarios"))
    if (entry.is_directory())
      std::filesystem::create_directory_symlink(entry.path(), data / entry.path().filename());
  setenv("FUSELINE_DATA", data.c_str(), 1);
  const CliRun run = cli({"measure", "--rivals", "eager"});
  unsetenv("FUSELINE_DATA");
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr("cuda/rivals/pytorch_blocks.py, which is not there"),
                             HasSubstr("--rival-command")));
}

MeasuredBlock block_of(const char* execution, double us) {
  return {.block = {.model = "llama2-7b", .execution = execution, .workload = {}},
          .time = {microseconds(us), microseconds(us - 1), microseconds(us + 1)}};
}

class MeasuredBesideRivals : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [policy, us] :
         {std::pair("per-operator", 1200.0), std::pair("coda", 1000.0)}) {
      m_.policies.emplace_back();
      m_.policies.back().policy = policy;
      m_.policies.back().block = block_of(policy, us);
    }
    m_.rivals = {block_of("torch-compile", 1060)};
    m_.rival_framework = "PyTorch 2.11.0";
    SelectionTexts texts;
    texts.gpu = "h200";
    selection_ = resolve_selection(std::nullopt, texts);
  }
  cuda::GpuMeasurement m_;
  Selection selection_;
};

TEST_F(MeasuredBesideRivals, SayHowManyTimesAsFast) {
  const std::string text = measurement_table(selection_, m_, false);
  expect_fits_100_columns(text);
  EXPECT_THAT(text, AllOf(HasSubstr("PyTorch 2.11.0, timed in turns with ours"),
                          HasSubstr("torch-compile"), HasSubstr("1060.0"),
                          HasSubstr("per-operator is 0.88, coda is 1.06 times as fast as "
                                    "torch-compile")));
  m_.rivals.clear();
  EXPECT_EQ(measurement_table(selection_, m_, false).find("in turns"), std::string::npos);
}

// Whatever the arguments are: a measurement must not be lost for them.
TEST(RecordedCommand, CanAlwaysBeWritten) {
  MeasurementMeta meta;
  for (const std::string& odd : {std::string(5000, '\\'), std::string("a\nb"), std::string("\xc3"),
                                 std::string(899, 'x') + "ä", std::string("plain")}) {
    meta.command = recorded_command({"--output", odd});
    EXPECT_NO_THROW((void)meta_toml(meta)) << odd.substr(0, 20);
  }
  EXPECT_EQ(meta.command, "fuseline measure --output plain");
}

TEST_F(MeasuredBesideRivals, StandInTheJson) {
  const auto j = nlohmann::json::parse(measurement_json(selection_, m_));
  const auto& rival = j.at("rivals").at(0);
  EXPECT_EQ(rival.at("execution"), "torch-compile");
  EXPECT_EQ(rival.at("framework"), "PyTorch 2.11.0");
  EXPECT_NEAR(rival.at("time_us").get<double>(), 1060, 1e-6);
  EXPECT_NEAR(rival.at("speed_up").at("coda").get<double>(), 1.06, 1e-9);
  EXPECT_EQ(j.at("policies").size(), 2U);
}

TEST(ExplainCuda, PrintsTheSourceOfAKernel) {
  const CliRun run =
      cli({"explain", "--cuda", "--model", "llama2-7b", "--policy", "coda", "--kernel", "gate_up"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("// Policy coda, kernel gate_up."),
                             HasSubstr("const auto y1 = mul(y, state.r);"),
                             HasSubstr("const auto o = swiglu(y1);"), HasSubstr("gemm_sm90.cuh")));
}

TEST(ExplainCuda, WritesForTheGpuThatIsNamed) {
  const CliRun run = cli(
      {"explain", "--cuda", "--gpu", "a100-sxm-80gb", "--policy", "coda", "--kernel", "gate_up"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("gemm_sm80.cuh"));
}

TEST(ExplainCuda, RefusesWhatItCannot) {
  EXPECT_EQ(cli({"explain", "--cuda", "--format", "json"}).status, 2);
  const CliRun kernel = cli({"explain", "--cuda", "--policy", "coda", "--kernel", "gate_upp"});
  EXPECT_EQ(kernel.status, 2);
  EXPECT_THAT(kernel.err, HasSubstr("did you mean 'gate_up'"));
  const CliRun block = cli({"explain", "--cuda", "--policy", "whole-block"});
  EXPECT_EQ(block.status, 3);
  EXPECT_THAT(block.err, HasSubstr("whole-block has no kernel"));
}

}  // namespace
}  // namespace fuseline
