// One call of a block for sequences that differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/mixed_batch.h"
#include "sim/gpu/gpu_file.h"
#include "sim/gpu/plan_target.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

using test::problem_of;
using testing::HasSubstr;

MixedCall mixed(const std::vector<SequenceGroup>& groups, std::optional<std::int64_t> page = {}) {
  return predict_mixed("coda", load_model("tinyllama"), load_gpu("h200"), {}, groups, page,
                       Launching::graph);
}

Seconds alone(const SequenceGroup& g) {
  Workload work;
  work.phase = Phase::decode;
  work.batch = g.sequences;
  work.seq = g.tokens;
  work.context = g.context;
  const Gpu gpu = load_gpu("h200");
  return simulate(make_plan("coda", load_model("tinyllama"), work, plan_target(gpu)), gpu,
                  Fidelity::hierarchy)
      .time;
}

// Rows, one new token each, cost the same as ever; only what the cache left in L2 may differ.
TEST(MixedBatch, OfOneGroupIsTheBlock) {
  const SequenceGroup group{8, 1, 2048};
  EXPECT_NEAR(mixed({group}).whole().time / alone(group), 1, 0.01);
}

TEST(MixedBatch, LoadsTheWeightsOnce) {
  const std::vector<SequenceGroup> groups = {{31, 1, 1024}, {1, 256, 512}};
  const MixedCall call = mixed(groups);
  ASSERT_EQ(call.attention.size(), 2U);
  EXPECT_NEAR(call.apart.time / (alone(groups[0]) + alone(groups[1])), 1, 1e-9);
  // Weights cross HBM once in one call and twice in two.
  EXPECT_LT(call.whole().hbm, call.apart.hbm);
  EXPECT_LT(call.whole().time, call.apart.time);
  EXPECT_LT(call.attention[1].hbm, call.attention[0].hbm);
}

TEST(MixedBatch, PagesCostTheirTables) {
  const SequenceGroup group{4, 1, 1000};
  const MixedCall call = mixed({group}, 16);
  EXPECT_EQ(call.tables.hbm, Bytes(4 * 63 * 4));  // 63 pages of 16 tokens hold 1,000
  EXPECT_GT(call.tables.time.value(), 0);
  // A copy reads and writes keys and values: 4 sequences, 1,000 tokens, 4 heads of 64, bf16.
  EXPECT_EQ(call.gathering.hbm, Bytes(std::int64_t{2} * 2 * 4 * 1000 * 4 * 64 * 2));
  EXPECT_EQ(mixed({group}).tables.hbm, Bytes());
}

TEST(MixedBatch, ReadsItsText) {
  const std::vector<SequenceGroup> groups = parse_sequences("--sequences", "31x1@4096+1x512");
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(describe(groups[0]), "31 x 1 of 4,096");
  EXPECT_EQ(describe(groups[1]), "1 x 512 of 512");
  EXPECT_EQ(rows_of(groups), 543);
  for (const char* wrong : {"", "x", "3", "3x", "x1", "0x1@5", "3x1@", "3x1@5+", "3x4@2", "3x1@5@6",
                            "3.5x1@8", "-1x1@8", "99999999x1@5"}) {
    const InputProblem p = problem_of([&] { parse_sequences("--sequences", wrong); });
    EXPECT_EQ(p.field, "--sequences") << wrong;
    EXPECT_THAT(p.allowed, HasSubstr("SEQUENCESxNEW@CACHE")) << wrong;
  }
}

TEST(MixedBatch, ReadsAFileAndRefusesSizesThatAreTooLarge) {
  const std::string path = testing::TempDir() + "sequences.csv";
  std::ofstream(path) << "sequences,tokens,context\n31,1,4096\n1,512,2560\n";
  const std::vector<SequenceGroup> groups = parse_sequences("--sequences", path);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(rows_of(groups), 31 + 512);
  EXPECT_EQ(groups[1].context, 2560);
  std::ofstream(path) << "sequences,tokens,context\n31,1,4096\n9000000000000000000,2,2\n";
  const InputProblem problem = problem_of([&] { (void)parse_sequences("--sequences", path); });
  EXPECT_EQ(problem.line, 3);
  EXPECT_EQ(problem.field, "sequences");
  EXPECT_EQ(problem.message, "is too large");
}

TEST(MixedBatch, RefusesPoliciesWhoseAttentionIsNoKernel) {
  for (const char* policy : {"unfused", "whole-block"}) {
    const InputProblem p = problem_of([&] {
      predict_mixed(policy, load_model("tinyllama"), load_gpu("h200"), {}, {{2, 1, 64}}, {},
                    Launching::graph);
    });
    EXPECT_EQ(p.value, policy);
  }
}

}  // namespace
}  // namespace fuseline
