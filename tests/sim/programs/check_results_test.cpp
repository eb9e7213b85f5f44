// Results held against the fp64 meaning of programs: what a GPU stored, here what the executor did.
#include "sim/programs/check_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/some_rows.h"

namespace fuseline {
namespace {

std::string product_text(std::int64_t m, std::int64_t n, std::int64_t k) {
  return "fuse 1\nsize M = " + std::to_string(m) + ", N = " + std::to_string(n) +
         ", K = " + std::to_string(k) +
         "\ninput x[M,K]\nweight w[N,K]\nweight b[1,N]\ninput r[M,N]\noutput y[M,N]\n"
         "activation s[M,⌈N/128⌉], fp32\noutput total[M,1], fp32\n\nprogram product\n"
         "  y = x[M,K] · w[N,K]ᵀ\n  r = load r[M,N]\n  h = y + r\n  b = load_cols b[1,N]\n"
         "  z = h * b\n  store y[M,N] = z\n  store s[M,⌈N/128⌉] = sum_squares(z)\n\n"
         "program finish\n  for each row of [M, ⌈N/128⌉]\n  p = load s[M,⌈N/128⌉]\n"
         "  t = row_sum(p)\n  store_rows total[M,1] = t\n";
}

struct ExecutedPrograms {
  Plan plan;
  executor::Inputs inputs;
  executor::Execution executed;
};

ExecutedPrograms executed_programs(std::int64_t m, std::int64_t n, std::int64_t k) {
  const ProgramFile file = read_program_text(product_text(m, n, k), "test.fuse");
  EXPECT_TRUE(file.readable());
  ExecutedPrograms run{.plan = whole_plan(file), .inputs = {}, .executed = {}};
  const executor::Workers workers{.threads = 2};
  run.inputs = executor::random_storage(run.plan.graph, 3, workers);
  run.executed = executor::execute(run.plan, run.inputs, load_gpu("h200"), {.workers = workers});
  return run;
}

CheckedResults held_against_text(const ExecutedPrograms& run) {
  return check_results(
      run.plan, run.inputs,
      [&](TensorId id) -> const executor::Storage& { return run.executed.memory->at(id); }, 5);
}

executor::Storage& tensor_of(ExecutedPrograms& run, const char* name) {
  return run.executed.memory->writable(*run.plan.graph.find_tensor(name));
}

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
