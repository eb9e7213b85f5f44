// Rivals as far as a machine without GPU and PyTorch goes: the process, its lines, what is said
// when it fails.
#include "cuda/run/rival.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "cuda/run/rival_turns.h"
#include "model/config/model_files.h"
#include "sim/executor/parallel.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kReady =
    R"(echo '{"ready": "a", "execution": "eager", "framework": "F 1", "layers": 2, "blocks": 6}'; )";
const std::string kDone = R"(echo '{"done": true}'; )";

// What it says when it is asked for one burst of two replays.
std::string said_by(const std::string& script, RivalLimits limits = {}) {
  try {
    RivalProcess rival(script, nullptr, limits);
    (void)rival.get_ready(1);
    (void)rival.replay(0, 3, 2);
  } catch (const MissingError& error) {
    return error.what();
  }
  return "";
}

TEST(RivalProcess, GetsReadyAndAnswers) {
  RivalProcess rival(kReady + kDone + R"(read line; echo "$line" >&2; )" +
                         R"(echo '{"block": 0, "ms": [1.5, 2]}'; read line)",
                     nullptr);
  const auto blocks = rival.get_ready(1);
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].execution, "eager");
  EXPECT_EQ(blocks[0].framework, "F 1");
  EXPECT_EQ(blocks[0].problem, "");
  EXPECT_EQ(blocks[0].layers, 2);
  EXPECT_EQ(blocks[0].blocks, 6);
  const auto times = rival.replay(0, 3, 2);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_DOUBLE_EQ(times[0].value(), 1.5e-3);
  EXPECT_DOUBLE_EQ(times[1].value(), 2e-3);
}

TEST(RivalProcess, ABlockThatFailedHasItsReason) {
  RivalProcess rival(R"(echo '{"failed": "a", "execution": "eager", "message": "no memory"}'; )" +
                         kDone + "read line",
                     nullptr);
  EXPECT_EQ(rival.get_ready(1).at(0).problem, "no memory");
}

TEST(RivalProcess, ItsEndComesWithStatusAndLastWords) {
  EXPECT_THAT(said_by("echo first >&2; echo 'No module named torch' >&2; echo >&2; exit 3"),
              AllOf(HasSubstr("exit status 3"), HasSubstr(": No module named torch")));
  EXPECT_THAT(said_by("no-such-program-here"),
              AllOf(HasSubstr("exit status 127"), HasSubstr("not found")));
  EXPECT_THAT(said_by("kill -9 $$"), HasSubstr("signal 9"));
  EXPECT_THAT(said_by(kReady + "exit 0"), HasSubstr("exit status 0"));
  // Writing to a process that has gone must not end this one by a signal.
  EXPECT_THAT(said_by(kReady + kDone + "exit 4"), HasSubstr("exit status 4"));
}

TEST(RivalProcess, WhatIsNoAnswerIsQuoted) {
  EXPECT_THAT(said_by("echo Loading...; read line"), HasSubstr("'Loading...', no answer"));
  EXPECT_THAT(said_by("echo '[1]'; read line"), HasSubstr("'[1]', no answer"));
  EXPECT_THAT(said_by("echo '{}'; read line"), HasSubstr("'{}', no answer"));
  EXPECT_THAT(said_by(kDone + "read line"), HasSubstr("0 blocks, 1 were wanted"));
  const std::string ready = kReady + kDone + "read line; echo '";
  EXPECT_THAT(said_by(ready + R"({"block": 0}'; read line)"), HasSubstr("no times"));
  EXPECT_THAT(said_by(ready + R"({"block": 0, "ms": [1]}'; read line)"), HasSubstr("no times"));
  EXPECT_THAT(said_by(ready + R"({"ms": [1, 0]}'; read line)"), HasSubstr("'0', no time"));
  EXPECT_THAT(said_by(ready + R"({"ms": [1, "x"]}'; read line)"), HasSubstr("no time"));
  EXPECT_THAT(said_by(ready + R"({"block": 0, "message": "too hot"}'; read line)"),
              HasSubstr("cannot: too hot"));
}

TEST(RivalProcess, WaitsNoLongerThanItsLimits) {
  RivalLimits limits;
  limits.ready = limits.answer = milliseconds(100);
  limits.end = milliseconds(0);
  EXPECT_THAT(said_by("echo compiling >&2; exec sleep 1000", limits),
              HasSubstr("takes too long to get ready"));
  limits.ready = milliseconds(60'000);
  EXPECT_THAT(said_by(kReady + kDone + "exec sleep 1000", limits),
              HasSubstr("takes too long to answer"));
}

TEST(RivalProcess, StopsWhenTheUserDoes) {
  std::atomic<bool> stop = false;
  RivalProcess rival("exec sleep 1000", &stop);
  std::thread user([&] { stop = true; });
  EXPECT_THROW((void)rival.get_ready(1), executor::Cancelled);
  user.join();
}

// What it started has the write end of a pipe with a name: reading ends when all of it has gone.
TEST(RivalProcess, LeavesNothingRunning) {
  const auto pipe =
      std::filesystem::temp_directory_path() / ("fuseline-rival-test-" + std::to_string(getpid()));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  RivalLimits limits;
  limits.end = milliseconds(0);
  auto rival = std::make_unique<RivalProcess>(
      "sleep 1000 > '" + pipe.string() + "' & " + kReady + kDone + "wait", nullptr, limits);
  (void)rival->get_ready(1);
  const int reader = open(pipe.c_str(), O_RDONLY | O_CLOEXEC);
  std::filesystem::remove(pipe);
  ASSERT_GE(reader, 0);
  rival.reset();
  char byte = 0;
  EXPECT_EQ(read(reader, &byte, 1), 0);
  close(reader);
}

TEST(RivalRefusal, NamesWhatTheScriptCannotImitate) {
  const ModelConfig llama = load_model("llama2-7b"), gpt = load_model("gpt2-xl");
  EXPECT_EQ(rival_refusal(llama, test::forward(1, 2048)), "");
  EXPECT_EQ(rival_refusal(gpt, test::train(4, 512)), "");
  EXPECT_EQ(rival_refusal(llama, test::decode(16, 1, 2048)), "");
  EXPECT_THAT(rival_refusal(llama, test::decode(1, 2, 2048)), HasSubstr("one token"));
  Workload half = test::forward(1, 64);
  half.dtype = Dtype::fp16;
  EXPECT_THAT(rival_refusal(llama, half), HasSubstr("bf16"));
  const ModelConfig mistral = load_model("mistral-7b");  // a window of 4,096
  EXPECT_EQ(rival_refusal(mistral, test::forward(1, 4096)), "");
  EXPECT_THAT(rival_refusal(mistral, test::forward(1, 8192)), HasSubstr("window"));
  ModelConfig biased = llama;
  biased.mlp_bias = true;
  EXPECT_THAT(rival_refusal(biased, test::forward(1, 64)), HasSubstr("biases"));
  ModelConfig bare = gpt;
  bare.out_bias = false;
  EXPECT_THAT(rival_refusal(bare, test::forward(1, 64)), HasSubstr("biases"));
}

TEST(RivalArguments, SayTheShapeThatIsMeasured) {
  EXPECT_EQ(rival_arguments(load_model("llama2-70b"), test::decode(16, 1, 2048), {"eager"}),
            "--serve --custom llama,8192,28672,64,8,128,0 --executions eager --phases decode "
            "--decode-shapes 16@2048");
  EXPECT_EQ(rival_arguments(load_model("gpt2-xl"), test::train(4, 512), {"eager", "torch-compile"}),
            "--serve --custom gpt,1600,6400,25,25,64,1 --executions eager,torch-compile --phases "
            "train --shapes 4x512");
}

// Blocks of another script: what the model gives their parameters.
TEST(RivalArguments, SayTheParametersOfOpenBlocks) {
  const ModelConfig mixtral = load_model("mixtral-8x7b"), sd3 = load_model("sd3-medium"),
                    mamba = load_model("mamba2-2.7b");
  EXPECT_EQ(rival_script(load_model("llama2-7b")), "pytorch_blocks.py");
  EXPECT_EQ(rival_script(mixtral), "pytorch_open.py");
  EXPECT_EQ(rival_arguments(mixtral, test::decode(1, 1, 2048), {"torch-compile"}),
            "--serve --open moe:D=4096:F=14336:H=32:Hkv=8:d=128:E=8:k=2 --executions torch-compile "
            "--phases decode --decode-shapes 1@2048");
  EXPECT_THAT(rival_arguments(load_model("qwen3-30b-a3b"), test::decode(16, 1, 2048), {"eager"}),
              HasSubstr(":E=128:k=8:qk_norm=1 "));
  EXPECT_THAT(rival_arguments(sd3, test::forward(2, 1024), {"eager"}),
              HasSubstr("--open mmdit:D=1536:F=6144:H=24:"));
  EXPECT_THAT(rival_arguments(mamba, test::forward(1, 2048), {"eager"}),
              HasSubstr("--open mamba2:D=2560:N=128:P=64 --executions eager --phases forward"));
  EXPECT_EQ(rival_refusal(mixtral, test::decode(1, 1, 2048)), "");
  EXPECT_EQ(rival_refusal(mamba, test::forward(1, 2048)), "");
  EXPECT_THAT(rival_refusal(mamba, test::decode(1, 1, 2048)), HasSubstr("does not decode"));
  EXPECT_THAT(rival_refusal(sd3, test::train(1, 1024)), HasSubstr("does not train"));
}

class RivalTurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "no python3 here";
  }
  const std::string command_ =
      std::string("python3 '") + FUSELINE_SOURCE_DIR + "/tests/cuda/run/fake_rival.py'";
  const ModelConfig model_ = load_model("llama2-7b");  // D = 4096
};

// The arguments, the lines of both sides, and the order of blocks where one is not there.
TEST_F(RivalTurnsTest, SpeakWithTheScript) {
  RivalTurns rivals;
  rivals.start(command_, model_, test::decode(16, 1, 2048), rival_executions(), nullptr);
  rivals.get_ready();
  EXPECT_THAT(rivals.ready(), ElementsAre("eager", "torch-compile"));
  EXPECT_EQ(rivals.framework(), "Fake 1.0");
  EXPECT_THAT(rivals.notes(), ElementsAre(HasSubstr("rival composed left out: RuntimeError: out")));
  for (std::size_t i = 0; i < 2; ++i) {
    const auto times = rivals.burst(i, 3, 2);
    ASSERT_TRUE(times.has_value());
    EXPECT_THAT(*times, ElementsAre((4096 + 16 + 1 + 2048 + 3) * Seconds(1e-3),
                                    (4096 + 16 + 1 + 2048 + 4) * Seconds(1e-3)));
  }
  rivals.end();
  EXPECT_EQ(rivals.ready().size(), 2U);
}

TEST_F(RivalTurnsTest, ALostRivalIsANote) {
  RivalTurns rivals;
  rivals.start(command_, model_, test::forward(1, 64), {"eager"}, nullptr);
  rivals.get_ready();
  ASSERT_EQ(rivals.ready().size(), 1U);
  EXPECT_EQ(rivals.burst(0, 0, 13), std::nullopt);
  EXPECT_TRUE(rivals.ready().empty());
  EXPECT_THAT(rivals.notes(), ElementsAre(HasSubstr("rivals left out: the rival cannot: "
                                                    "RuntimeError: unlucky")));
}

TEST(RivalTurns, WithoutAProgramAreANote) {
  RivalTurns rivals;
  rivals.start("no-such-program-here", test::tiny_llama(), test::forward(1, 64), {"eager"},
               nullptr);
  rivals.get_ready();
  EXPECT_TRUE(rivals.ready().empty());
  EXPECT_THAT(rivals.notes(), ElementsAre(HasSubstr("exit status 127")));
}

TEST(RivalTurns, WhatIsNotTheSameBlockIsNotStarted) {
  RivalTurns rivals;
  rivals.start("exit 1", test::tiny_llama(), test::decode(1, 2, 64), {"eager"}, nullptr);
  rivals.get_ready();
  EXPECT_THAT(rivals.notes(), ElementsAre(HasSubstr("one token")));
}

TEST_F(RivalTurnsTest, ScriptsArePython) {
  for (const char* name : {"pytorch_blocks.py", "rival_timing.py"}) {
    const std::string file = std::string(FUSELINE_SOURCE_DIR) + "/cuda/rivals/" + name;
    const std::string check =
        "python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], \"exec\")' '" +
        file + "'";
    EXPECT_EQ(std::system(check.c_str()), 0) << name;
  }
}

}  // namespace
}  // namespace fuseline::cuda
