// Options that are wrong by themselves: status 2, a message with the option, the value, what is
// allowed and the nearest name, and nothing on standard output.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/error/run_program.h"

namespace fuseline {
namespace {

struct BadCommand {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> parts;
};

void PrintTo(const BadCommand& command, std::ostream* out) { *out << command.name; }

std::vector<BadCommand> bad_commands() {
  const std::string range = "a whole number from 1 to 16777216";
  return {
      {"model",
       {"predict", "--model", "llama2-7", "--gpu", "h200"},
       {"--model = 'llama2-7'", "gpt2-xl", "did you mean 'llama2-7b'?"}},
      {"gpu",
       {"predict", "--model", "tinyllama", "--gpu", "h2000"},
       {"--gpu = 'h2000'", "rtx3090", "did you mean 'h200'?"}},
      {"policy",
       {"predict", "--model", "tinyllama", "--gpu", "h200", "--policy", "eager,coad"},
       {"--policy = 'coad'", "whole-block", "did you mean 'coda'?"}},
      {"phase",
       {"predict", "--model", "tinyllama", "--gpu", "h200", "--phase", "froward"},
       {"--phase = 'froward'", "forward, train, decode", "did you mean 'forward'?"}},
      {"fidelity",
       {"predict", "--model", "tinyllama", "--gpu", "h200", "--fidelity", "rofline"},
       {"--fidelity = 'rofline'", "did you mean 'roofline'?"}},
      {"zero_batch", {"predict", "--batch", "0"}, {"--batch = '0'", range}},
      {"negative_seq", {"predict", "--seq", "-5"}, {"--seq = '-5'", range}},
      {"fractional_seq", {"predict", "--seq", "2.5"}, {"--seq = '2.5'", range}},
      {"huge_seq", {"predict", "--seq", "99999999999999999999999"}, {"--seq", "too large", range}},
      {"seq_in_words", {"predict", "--seq", "many"}, {"--seq = 'many'", range}},
      {"too_many_rows",
       {"predict", "--batch", "65536", "--seq", "65536"},
       {"65536 sequences of 65536 tokens"}},
      {"short_context",
       {"predict", "--phase", "decode", "--seq", "8", "--context", "4"},
       {"context = '4'", "shorter than the 8 new tokens"}},
      {"context_in_forward",
       {"predict", "--phase", "forward", "--context", "4096"},
       {"context = '4096'", "has no meaning in forward"}},
      {"layers", {"predict", "--layers", "0"}, {"--layers = '0'", "1 to 10000"}},
      {"no_such_scenario", {"predict", "nowhere.toml"}, {"nowhere.toml", "no such file"}},
      {"folder_as_model",
       {"predict", "--model", "/", "--gpu", "h200"},
       {"/: is a folder", "allowed: a file"}},
      {"unreadable_model",
       {"predict", "--model", "/proc/self/mem", "--gpu", "h200"},
       {"/proc/self/mem: cannot be read"}},
      {"gemm_dimension",
       {"gemm", "--m", "0", "--n", "64", "--k", "64", "--gpu", "h200"},
       {"--m = '0'"}},
      {"verdict_on",
       {"verdict", "--on", "cdoa"},
       {"--on = 'cdoa'", "per-operator", "did you mean 'coda'?"}},
      {"verdict_on_training",
       {"verdict", "--phase", "train", "--on", "whole-block"},
       {"--on = 'whole-block'"}},
      {"verdict_format",
       {"verdict", "--format", "jsn"},
       {"--format = 'jsn'", "table, json, csv", "did you mean 'json'?"}},
      {"judge_gpu", {"judge", "--gpu", "h2000"}, {"--gpu = 'h2000'", "did you mean 'h200'?"}},
      {"judge_gpu_without_figures",
       {"judge", "--gpu", "h20"},
       {"--gpu = 'h20'", "no figure was published of it"}},
      {"judge_worst", {"judge", "--worst", "-1"}, {"--worst = '-1'"}},
      {"judge_file", {"judge", "nowhere.csv"}, {"nowhere.csv", "no such file"}},
      {"diff_one_file", {"diff", "a.json"}, {"A B", "two files"}},
      {"diff_fail_if",
       {"diff", "a.json", "b.json", "--fail-if", "faster=3%"},
       {"--fail-if = 'faster=3%'", "slower=3%"}},
      {"subcommand", {"predcit"}, {"predcit", "predict"}},
      {"option", {"predict", "--modle", "tinyllama"}, {"--modle", "did you mean '--model'?"}},
  };
}

class BadCommandLine : public testing::TestWithParam<BadCommand> {};

TEST_P(BadCommandLine, IsRefused) {
  const ProgramRun run = run_program(GetParam().arguments);
  if (!run.available) GTEST_SKIP() << "the program is not built";
  EXPECT_EQ(run.status, 2) << run.error;
  EXPECT_EQ(run.output, "");
  EXPECT_TRUE(run.files_left.empty()) << run.files_left.front();
  for (const std::string& part : GetParam().parts) {
    EXPECT_NE(run.error.find(part), std::string::npos) << "no \"" << part << "\" in:\n"
                                                       << run.error;
  }
}

INSTANTIATE_TEST_SUITE_P(Options, BadCommandLine, testing::ValuesIn(bad_commands()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace fuseline
