// measure --instructions as a file, and the instructions that explain prints.
#include "cli/instructions_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(InstructionsFile, HasALineForEachInstruction) {
  cuda::GpuMeasurement m;
  m.policies.resize(2);
  m.policies[1].instructions = {{.sm = 3,
                                 .index = 1,
                                 .step = "out",
                                 .text = "out rows 0 to 30; waits for a, b",
                                 .begin = 10,
                                 .data = 20,
                                 .end = 30,
                                 .predicted_begin = 11,
                                 .predicted_end = 31}};
  EXPECT_EQ(instructions_csv(m),
            "sm,index,step,begin_ns,data_ns,end_ns,predicted_begin_ns,predicted_end_ns,"
            "instruction\n3,1,out,10,20,30,11,31,\"out rows 0 to 30; waits for a, b\"\n");
}

TEST(InstructionsFile, IsRefusedWhereNothingHasInstructions) {
  cuda::GpuMeasurement m;
  m.policies.resize(1);
  EXPECT_THROW((void)instructions_csv(m), InputError);
}

TEST(ExplainInstructions, OfTheFirstSm) {
  const CliRun decode = cli({"explain", "--model", "llama2-7b", "--gpu", "h200", "--phase",
                             "decode", "--policy", "whole-block"});
  ASSERT_EQ(decode.status, 0) << decode.err;
  EXPECT_THAT(decode.out, HasSubstr("SM 0:\n"));
  EXPECT_THAT(decode.out, HasSubstr("qkv rows 0 to 29; adds 1 to queries of key head 0"));
  EXPECT_THAT(decode.out, HasSubstr("finish_stats; waits for y"));
  const CliRun forward = cli({"explain", "--gpu", "h200", "--policy", "whole-block"});
  ASSERT_EQ(forward.status, 0) << forward.err;
  EXPECT_THAT(forward.out, Not(HasSubstr("SM 0:")));
}

}  // namespace
}  // namespace fuseline
