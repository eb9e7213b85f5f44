// Operators of a block that programs of one's own compute.
#include "model/programs/block_programs.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/backward.h"
#include "model/blocks/block_text.h"
#include "model/policy.h"
#include "model/reference.h"
#include "tests/model/programs/round_trip.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

constexpr const char* kBlock = R"(fuseline.block/1

block b(D = 24, F = 40)
  input x[M, D]
  norm: xn = rms_norm(x, w_norm[D])
  act: act = swiglu(linear(xn, w_up[2 F, D]))
  down = linear(act, w_down[D, F])
  y = x + down
  output y -> x
)";

// The sizes are the block's, whatever stands here.
constexpr const char* kProgram = R"(fuse 1
size M = 2048, D = 4096, F = 11008
input xn[M,D]
weight w_up[2F,D]
output act[M,F]
activation largest[M,⌈F/128⌉], fp32

program mlp
  y = xn[M,D] · w_up[2F,D]ᵀ, pairs
  o = swiglu(y pairs)
  store act[M,F] = o
)";

class BlockPrograms : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) /
             (std::string("block_programs_") +
              testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // Without the line of a tensor that this program does not use.
  static std::string plain(std::string text = kProgram) {
    const std::size_t at = text.find("activation largest");
    return text.erase(at, text.find('\n', at) + 1 - at);
  }

  Graph build(const std::string& program, const std::string& computed,
              const Workload& work = test::forward(2, 5)) {
    std::ofstream(folder / "own.fuse") << program;
    std::ofstream(folder / "b.block")
        << kBlock << "  computed " << computed << " by \"own.fuse\"\n";
    const auto text = load_block_text((folder / "b.block").string());
    return build_graph(*text, {}, work);
  }

  std::string refused(const std::string& program, const std::string& computed = "up, act") {
    try {
      build(program, computed);
    } catch (const InputError& error) {
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused:\n" << program;
    return {};
  }

  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  std::filesystem::path folder;
};

TEST_F(BlockPrograms, RunInEveryPolicysPlan) {
  const Graph block = build(plain(), "up, act");
  for (const PolicyInfo& p : policies()) {
    const Plan plan = make_plan(p.name, block);
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << p.name;
    int found = 0;
    for (const Kernel& k : plan.kernels)
      for (const Program& program : k.phases) {
        if (program.name != "mlp") continue;
        ++found;
        EXPECT_EQ(program.body.size(), 2U) << p.name;
        if (k.phases.size() > 1) continue;  // phases of one launch
        EXPECT_EQ(k.kind, KernelKind::gemm) << p.name;
        EXPECT_EQ(k.implementation, Implementation::epilogue_gemm) << p.name;
      }
    EXPECT_EQ(found, 1) << p.name;
    EXPECT_FALSE(plan.graph.find_op("act")) << p.name;
    EXPECT_TRUE(plan.block.find_op("act")) << "the block stays what is computed";
  }
}

TEST_F(BlockPrograms, ComeBackFromAPlansText) {
  const Graph block = build(plain(), "up, act");
  for (const char* policy : {"eager", "coda"})
    (void)test::expect_round_trip(make_plan(policy, block), policy);
}

TEST_F(BlockPrograms, MeanWhatTheOperatorsMean) {
  const Graph block = build(plain(), "up, act");
  const TensorValues reference = run_reference(block, random_inputs(block, 7));
  const std::vector<SameMeaning> all =
      compare_programs(block, [&](TensorId id) { return reference.at(id); });
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].tensor, "act");
  EXPECT_TRUE(all[0].same()) << all[0].difference;
}

TEST_F(BlockPrograms, ThatMeanSomethingElseAreFoundInFp64) {
  const Graph block = build(replaced(plain(), "swiglu", "geglu"), "up, act");
  const TensorValues reference = run_reference(block, random_inputs(block, 7));
  const std::vector<SameMeaning> all =
      compare_programs(block, [&](TensorId id) { return reference.at(id); });
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].same()) << all[0].difference;
}

TEST_F(BlockPrograms, AreRefusedWithTheLineAndTheReason) {
  EXPECT_THAT(refused(plain(), "upp, act"), HasSubstr("the block has no such operator"));
  EXPECT_THAT(refused(plain(), "act"), HasSubstr("b.block:10"));
  EXPECT_THAT(refused(replaced(plain(), "swiglu", "swigloo")), HasSubstr("own.fuse:9"));
  EXPECT_THAT(refused(kProgram), HasSubstr("largest"));
  EXPECT_THAT(refused(replaced(plain(), "weight w_up[2F,D]", "weight w_up[2F,D], fp16")),
              HasSubstr("is [80, 24] in fp16"));
  std::string other = plain();
  for (int i = 0; i < 2; ++i) other = replaced(other, "act[M,F]", "result[M,F]");
  EXPECT_THAT(refused(other), HasSubstr("act is made by act and read by down"));
}

TEST_F(BlockPrograms, HaveNoBackwardPass) {
  const Graph block = build(plain(), "up, act");
  EXPECT_THROW((void)make_plan("coda", differentiate(block)), InputError);
}

TEST_F(BlockPrograms, ArePrintedWithTheBlock) {
  const std::string text = std::string(kBlock) + "  computed up, act by \"own.fuse\"\n";
  EXPECT_EQ(block_file_text(parse_block_file(text, "b.block")), text);
}

}  // namespace
}  // namespace fuseline
