#include "model/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "model/config/model_files.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string reason(const std::string& policy, const ModelConfig& config, const std::string& from,
                   const std::string& to) {
  const Explanation e = explain(make_plan(policy, config, test::forward(1, 2048)));
  for (const EdgeExplanation& edge : e.edges)
    if (edge.from == from && edge.to == to) return (edge.fused ? "yes: " : "no: ") + edge.reason;
  return "no such edge";
}

TEST(Explain, SaysWhyNeighboursAreApart) {
  const ModelConfig llama = test::llama2_7b();
  EXPECT_THAT(reason("coda", llama, "swiglu", "down"), HasSubstr("no: second mainloop"));
  EXPECT_THAT(reason("coda", llama, "stats_norm2", "finish_norm2"),
              HasSubstr("partials of all column tiles"));
  EXPECT_THAT(reason("torch-compile", llama, "oproj", "residual1"),
              HasSubstr("needs a full row of 4096 columns, while a tile of oproj holds 256"));
  EXPECT_THAT(reason("torch-compile", llama, "gate_up", "swiglu"), HasSubstr("interleaved"));
  EXPECT_THAT(reason("torch-compile", llama, "down", "residual2"),
              HasSubstr("library call takes no such epilogue"));
  EXPECT_THAT(reason("eager", llama, "residual1", "norm2"),
              HasSubstr("could share a kernel, but the policy launches one kernel per operator"));
  EXPECT_THAT(reason("xla", test::gpt2_xl(), "residual1", "residual2"),
              HasSubstr("cycle through up+up_bias+gelu"));
  EXPECT_THAT(reason("eager", llama, "norm2", "gate_up"), HasSubstr("mainloop takes 64 at a time"));
}

TEST(Explain, SaysWhatFusedNeighboursKeepOnChip) {
  EXPECT_EQ(reason("coda", test::llama2_7b(), "gate_up_scale", "swiglu"),
            "yes: same kernel, gu stays on chip");
  EXPECT_EQ(reason("coda", test::llama2_7b(), "residual1", "stats_norm2"),
            "yes: same kernel, h is stored too for gate_up, residual2");
  EXPECT_THAT(reason("whole-block", test::llama2_7b(), "swiglu", "down"),
              HasSubstr("yes: same launch, a grid barrier between"));
}

TEST(Explain, SaysWhereTensorsLive) {
  const Explanation e = explain(make_plan("coda", test::llama2_7b(), test::forward(1, 2048)));
  const auto tensor = [&](const std::string& name) {
    return *std::ranges::find(e.tensors, name, &TensorExplanation::name);
  };
  EXPECT_EQ(tensor("gu").home, "on chip");
  EXPECT_EQ(tensor("gu").bytes, Bytes(0));
  EXPECT_EQ(tensor("h").home, "HBM");
  EXPECT_EQ(tensor("qkv").home, "HBM, columns 8192:12288 only");
  EXPECT_EQ(tensor("qkv").bytes, Bytes(std::int64_t{2048} * 4096 * 2));
  EXPECT_EQ(tensor("h").producer, "oproj");
}

void expect_lines_fit(const Plan& plan) {
  std::stringstream text(explain_text(explain(plan)));
  for (std::string line; std::getline(text, line);) {
    const auto width = std::ranges::count_if(
        line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    EXPECT_LE(width, 100) << line;
  }
}

// What a framework launches beside its kernels counts as launches too.
TEST(Explain, CountsLaunchesBesideKernels) {
  const Plan plan = make_plan("eager", load_model("mixtral-8x7b"), test::decode(1, 1, 64));
  std::size_t beside = 0;
  for (const Kernel& kernel : plan.kernels) {
    beside += kernel.beside.size();
    if (kernel.in_pieces) --beside;
  }
  EXPECT_GT(beside, 10U);
  const std::string text = explain_text(explain(plan));
  EXPECT_THAT(text, testing::HasSubstr(
                        fmt::format("policy eager: {} launches", plan.kernels.size() + beside)));
  EXPECT_THAT(text, testing::HasSubstr("launched beside it: "));
  EXPECT_THAT(text, testing::HasSubstr("launched in its place: "));
}

// A framework adds the experts' rows to the tokens' with a kernel of its own, which its compiler
// launches too. Our kernels gather them.
TEST(Explain, FrameworksAddRowsToRows) {
  for (const std::string name : {"eager", "torch-compile", "coda"}) {
    const Plan plan = make_plan(name, load_model("mixtral-8x7b"), test::forward(1, 64));
    EXPECT_EQ(explain_text(explain(plan)).find("scattered addition") != std::string::npos,
              name != "coda")
        << name;
  }
}

TEST(Explain, TextFitsAHundredColumns) {
  for (const ModelConfig& config : {test::llama2_7b(), test::gpt2_xl()}) {
    for (const PolicyInfo& info : policies())
      for (const Workload& work : {test::forward(1, 2048), test::decode(64, 1, 2048)})
        expect_lines_fit(make_plan(info.name, config, work));
    for (const std::string& policy : test::training_policies())
      expect_lines_fit(make_plan(policy, config, test::train(1, 2048)));
  }
}

TEST(Explain, SaysWhyNeighboursOfTheBackwardPassAreApart) {
  const auto reason_of = [](const std::string& policy, const ModelConfig& config,
                            const std::string& from, const std::string& to) {
    const Explanation e = explain(make_plan(policy, config, test::train(1, 2048)));
    for (const EdgeExplanation& edge : e.edges)
      if (edge.from == from && edge.to == to) return edge.reason;
    return std::string("no such edge");
  };
  const ModelConfig llama = test::llama2_7b();
  EXPECT_THAT(reason_of("eager", llama, "norm2", "d_norm2"),
              HasSubstr("between the forward and the backward pass"));
  EXPECT_THAT(reason_of("per-operator", llama, "d_gate_up", "d_norm2"),
              HasSubstr("needs a full row of 4096 columns"));
  EXPECT_THAT(reason_of("per-operator", llama, "d_gate_up", "dw_norm2"),
              HasSubstr("sums over all 2048 rows, while a tile of d_gate_up holds 128"));
  EXPECT_THAT(reason_of("coda", llama, "dot_norm2", "finish_dot_norm2"),
              HasSubstr("partials of all column tiles of its rows"));
  EXPECT_THAT(reason_of("coda", llama, "dw_norm2_partial", "dw_norm2"),
              HasSubstr("partials of all row tiles of its columns"));
  EXPECT_THAT(reason_of("coda", llama, "d_q", "convert_dq"),
              HasSubstr("complete only when other thread blocks have added to them"));
  EXPECT_THAT(reason_of("torch-compile", test::gpt2_xl(), "d_gelu", "db_up_partial"),
              HasSubstr("a loop of their own"));
  EXPECT_THAT(reason_of("xla", llama, "d_swiglu", "dw_gate_up"),
              HasSubstr("would make the operand"));
}

struct GoldenCase {
  std::string policy;
  std::string model;
  std::string phase;
};

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const PolicyInfo& info : policies())
    for (const char* model : {"llama2-7b", "gpt2-xl"})
      for (const char* phase : {"forward", "decode"}) cases.push_back({info.name, model, phase});
  for (const std::string& policy : test::training_policies())
    for (const char* model : {"llama2-7b", "gpt2-xl"}) cases.push_back({policy, model, "train"});
  return cases;
}

class Golden : public ::testing::TestWithParam<GoldenCase> {};

// After an intended change: FUSELINE_UPDATE_GOLDEN=1 model_tests --gtest_filter='*Golden*', then
// read the difference.
TEST_P(Golden, PlanTextIsAsRecorded) {
  const GoldenCase& c = GetParam();
  const ModelConfig config = c.model == "gpt2-xl" ? test::gpt2_xl() : test::llama2_7b();
  const Workload work = c.phase == "decode"  ? test::decode(1, 1, 2048)
                        : c.phase == "train" ? test::train(1, 2048)
                                             : test::forward(1, 2048);
  const std::string text = explain_text(explain(make_plan(c.policy, config, work)));
  const std::string path = std::string(FUSELINE_SOURCE_DIR) + "/tests/golden/" + c.policy + "-" +
                           c.model + "-" + c.phase + ".txt";
  if (std::getenv("FUSELINE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    GTEST_SKIP() << "recorded " << path;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; record it with FUSELINE_UPDATE_GOLDEN=1";
  std::stringstream recorded;
  recorded << file.rdbuf();
  EXPECT_EQ(text, recorded.str()) << path;
}

INSTANTIATE_TEST_SUITE_P(Plans, Golden, ::testing::ValuesIn(golden_cases()), [](const auto& p) {
  std::string name = p.param.policy + "_" + p.param.model + "_" + p.param.phase;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace fuseline
