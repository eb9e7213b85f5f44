// fuseline measure as far as a machine without a GPU goes; tests/cuda/run has the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cuda/run/known_gpu.h"
#include "model/error.h"
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
                    Refused{{"--format", "xml"}, "--format"}));

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
