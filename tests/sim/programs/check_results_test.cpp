// Results held against the fp64 meaning of programs: what a GPU stored, here what the executor did.
#include "sim/programs/check_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "model/programs/program_file.h"
#include "sim/executor/inputs.h"
#include "sim/programs/some_rows.h"
#include "tests/sim/programs/executed_programs.h"

namespace fuseline {
namespace {

using test::executed_programs;
using test::executed_text;
using test::ExecutedPrograms;
using test::gradient_like_text;
using test::held_against_text;
using test::tensor_of;

TEST(CheckResults, SmallProgramsAreCheckedInEveryRow) {
  const CheckedResults c = held_against_text(executed_programs(96, 128, 64));
  EXPECT_TRUE(c.passed());
  EXPECT_EQ(c.rows, 0);
  EXPECT_EQ(c.tensors.size(), 3U);
}

TEST(CheckResults, ManyProductsAreCheckedInSomeRows) {
  ExecutedPrograms run = executed_programs(640, 2048, 1024);
  const CheckedResults c = held_against_text(run);
  EXPECT_TRUE(c.passed());
  EXPECT_EQ(c.rows, (std::int64_t{1} << 30) / (2048 * 1024));
  // One wrong row among those of the sample is seen, and the first always is one of them.
  const std::vector<float> zeros(2048);
  tensor_of(run, "y").write(0, 0, 2048, zeros.data());
  const CheckedResults wrong = held_against_text(run);
  EXPECT_FALSE(wrong.passed());
  EXPECT_FALSE(wrong.tensors[0].agrees());
  EXPECT_TRUE(wrong.tensors[1].agrees());
}

// Kept sums of squares that are drawn negative have no root: that is no fault of the machine's.
TEST(CheckResults, SaysWhereFp64IsNotFiniteEither) {
  const CheckedResults c = held_against_text(
      executed_text("fuse 1\ninput s[96,16], fp32\noutput r[96,1], fp32\n\nprogram finish\n"
                    "  for each row of [96, 16]\n  p = load s[96,16]\n  t = row_sum(p)\n"
                    "  q = rsqrt(t)\n  store_rows r[96,1] = q\n"));
  EXPECT_FALSE(c.passed());
  EXPECT_TRUE(c.tensors.empty());
  EXPECT_THAT(c.why_not, testing::HasSubstr("r of finish is not finite in fp64 either"));
}

TEST(CheckResults, ConstantsAndNaNsAreWrong) {
  for (const float constant : {0.0F, 1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    ExecutedPrograms run = executed_programs(96, 128, 64);
    const std::vector<float> row(128, constant);
    for (std::int64_t r = 0; r < 96; ++r) tensor_of(run, "y").write(r, 0, 128, row.data());
    EXPECT_FALSE(held_against_text(run).passed()) << constant;
  }
}

// Keys of a cache, made anew as they are loaded: their rows are not the queries'.
TEST(CheckResults, WhatNobodyStatesIsNotChecked) {
  Plan plan;
  const auto tensor = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    plan.homes.push_back(Home::hbm);
    return plan.graph.whole(plan.graph.add_tensor(
        {.name = name, .role = role, .dtype = Dtype::fp32, .rows = rows, .cols = cols}));
  };
  const Operand q = tensor("q", Role::input, 4, 16), k = tensor("k", Role::input, 8, 16);
  const Operand y = tensor("y", Role::output, 4, 16);
  Program p{.name = "attention",
            .mainloop = AttentionMainloop{.q = q,
                                          .k = k,
                                          .v = k,
                                          .shape = {.heads = 1,
                                                    .kv_heads = 1,
                                                    .head_width = 16,
                                                    .batch = 1,
                                                    .q_tokens = 4,
                                                    .kv_tokens = 8,
                                                    .scale = 0.25},
                                          .k_value = 1}};
  p.prologue.emplace_back(LoadTile{.out = 1, .from = q});
  p.body.emplace_back(StoreTile{.in = 0, .to = y});
  Kernel kernel{.name = "attention", .kind = KernelKind::attention, .ops = {}, .phases = {}};
  kernel.phases.push_back(p);
  plan.kernels.push_back(kernel);
  const executor::Inputs inputs = executor::random_storage(plan.graph, 1, {});
  const executor::Memory memory(plan, inputs);
  const CheckedResults c = check_results(
      plan, inputs, [&](TensorId id) -> const executor::Storage& { return memory.at(id); }, 1);
  EXPECT_FALSE(c.passed());
  EXPECT_THAT(c.why_not, testing::HasSubstr("no meaning"));
}

TEST(SomeRows, RowsThatNeedOthersAreNotSampled) {
  const ProgramFile file = read_program_text(
      "fuse 1\nsize M = 256, N = 128\ninput x[M,N]\nactivation p[N,⌈M/128⌉], fp32\n\n"
      "program sums\n  for each tile of [M, N]\n  x = load x[M,N]\n"
      "  store p[N,⌈M/128⌉] = sum(x, of = columns)\n",
      "test.fuse");
  ASSERT_TRUE(file.readable());
  EXPECT_FALSE(plan_of_rows(file.plan, 8));
}

TEST(SomeRows, AProgramAloneFollowsTransposedOperandsAndSumsDownColumns) {
  const ProgramFile file = read_program_text(gradient_like_text(300, 64, 96), "test.fuse");
  ASSERT_TRUE(file.readable());
  const Plan& plan = file.plan;
  const Program& scaled = plan.kernels[0].phases[0];
  EXPECT_TRUE(sums_down_columns(scaled));
  const auto blocks = program_of_rows(plan, scaled, 128 + 44);
  ASSERT_TRUE(blocks);
  const auto cut = [&](const PlanOfRows& p, const char* name) {
    return p.cut[static_cast<std::size_t>(plan.graph.find_tensor(name)->index)];
  };
  EXPECT_EQ(cut(*blocks, "d"), Cut::rows);
  EXPECT_EQ(cut(*blocks, "parts"), Cut::blocks);
  EXPECT_EQ(blocks->plan.graph.tensor(*plan.graph.find_tensor("parts")).cols, 2);
  const auto product = program_of_rows(plan, plan.kernels[2].phases[0], 5);
  ASSERT_TRUE(product);
  EXPECT_EQ(cut(*product, "g"), Cut::columns);
  EXPECT_EQ(cut(*product, "x"), Cut::whole);
  EXPECT_EQ(cut(*product, "dw"), Cut::rows);
  EXPECT_THAT(sample_of_blocks(300, 1, 1), testing::SizeIs(44));  // the last block
  EXPECT_THAT(sample_of_blocks(300, 2, 1), testing::SizeIs(128 + 44));
}

// What a mask hides depends on a row's place, and a sum of whole columns has all rows.
TEST(SomeRows, SumsOfWholeColumnsAreNotSampled) {
  const ProgramFile file = read_program_text(
      "fuse 1\nsize M = 256, N = 128\ninput x[M,N]\noutput s[1,N], fp32\n\n"
      "program sums\n  for each tile of [M, N]\n  x = load x[M,N]\n  t = column_sum(x)\n"
      "  store_cols s[1,N] = t\n",
      "test.fuse");
  ASSERT_TRUE(file.readable());
  EXPECT_FALSE(plan_of_rows(file.plan, 8));
  EXPECT_FALSE(program_of_rows(file.plan, file.plan.kernels[0].phases[0], 8));
}

TEST(SomeRows, SamplesAreDifferentInOrderAndHaveTheEnds) {
  const std::vector<std::int64_t> rows = sample_of_rows(1000, 20, 1);
  EXPECT_EQ(rows.size(), 20U);
  EXPECT_EQ(rows.front(), 0);
  EXPECT_EQ(rows.back(), 999);
  EXPECT_TRUE(std::ranges::is_sorted(rows));
  EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
  EXPECT_NE(rows, sample_of_rows(1000, 20, 2));
  EXPECT_THAT(sample_of_rows(3, 3, 1), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(sample_of_rows(1, 1, 1), testing::ElementsAre(0));
}

}  // namespace
}  // namespace fuseline
