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

ExecutedPrograms executed_text(const std::string& text) {
  const ProgramFile file = read_program_text(text, "test.fuse");
  EXPECT_TRUE(file.readable());
  ExecutedPrograms run{.plan = whole_plan(file), .inputs = {}, .executed = {}};
  const executor::Workers workers{.threads = 2};
  run.inputs = executor::random_storage(run.plan.graph, 3, workers);
  run.executed = executor::execute(run.plan, run.inputs, load_gpu("h200"), {.workers = workers});
  return run;
}

ExecutedPrograms executed_programs(std::int64_t m, std::int64_t n, std::int64_t k) {
  return executed_text(product_text(m, n, k));
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

// A gradient: sums down columns, then products whose first operand is stored transposed. A row of
// the last one needs all rows of the first.
std::string gradient_like_text(std::int64_t m, std::int64_t n, std::int64_t k) {
  return "fuse 1\nsize M = " + std::to_string(m) + ", N = " + std::to_string(n) +
         ", K = " + std::to_string(k) +
         "\ninput d[M,N]\ninput x[M,K]\nactivation g[M,N]\nactivation parts[N,⌈M/128⌉], fp32\n"
         "output db[1,N]\noutput dw[N,K]\n\nprogram scaled\n  for each tile of [M, N]\n"
         "  d = load d[M,N]\n  z = tanh(d)\n  store g[M,N] = z\n"
         "  store parts[N,⌈M/128⌉] = sum(z, of = columns)\n\n"
         "program sums\n  for each row of [N, ⌈M/128⌉]\n  p = load parts[N,⌈M/128⌉]\n"
         "  s = row_sum(p)\n  store_rows db[1,N] = s\n\n"
         "program product\n  y = g[M,N]ᵀ · x[M,K]\n  store dw[N,K] = y\n";
}

const VerifiedTensor& checked_tensor(const CheckedResults& c, const std::string& name) {
  const auto found = std::ranges::find(c.tensors, name, &VerifiedTensor::name);
  EXPECT_NE(found, c.tensors.end()) << name;
  return *found;
}

TEST(CheckResults, LargeGradientsAreCheckedProgramByProgram) {
  // 2^30 multiplications and some more; the last block has 90 rows.
  ExecutedPrograms run = executed_text(gradient_like_text(730, 1088, 1360));
  const CheckedResults c = held_against_text(run);
  EXPECT_EQ(c.why_not, "");
  EXPECT_TRUE(c.passed());
  EXPECT_TRUE(c.alone);
  EXPECT_EQ(c.tensors.size(), 4U);
  const VerifiedTensor& dw = checked_tensor(c, "dw");
  EXPECT_EQ(dw.of_rows, 1088);
  EXPECT_EQ(dw.rows, (std::int64_t{1} << 30) / (730 * 1360));
  EXPECT_EQ(checked_tensor(c, "parts").of_rows, 730);
}

// Each fault is the fault of the program that made it, and of no other.
TEST(CheckResults, FaultsAtFullSizeAreFoundProgramByProgram) {
  ExecutedPrograms run = executed_text(gradient_like_text(730, 1088, 1360));
  const std::vector<float> zeros(1360);
  tensor_of(run, "dw").write(1087, 0, 1360, zeros.data());
  const CheckedResults c = held_against_text(run);
  EXPECT_FALSE(c.passed());
  EXPECT_FALSE(checked_tensor(c, "dw").agrees());
  for (const char* right : {"g", "parts", "db"})
    EXPECT_TRUE(checked_tensor(c, right).agrees()) << right;
  // A partial sum of the block that is not whole.
  run = executed_text(gradient_like_text(730, 1088, 1360));
  for (std::int64_t column = 0; column < 1088; ++column)
    tensor_of(run, "parts").write(column, 5, 1, zeros.data());
  const CheckedResults sums = held_against_text(run);
  EXPECT_FALSE(checked_tensor(sums, "parts").agrees());
  EXPECT_FALSE(checked_tensor(sums, "db").agrees());  // the sum of other partials than are there
  EXPECT_TRUE(checked_tensor(sums, "dw").agrees());
}

TEST(CheckResults, WhatTwoProgramsStoreInOnePlaceIsNotCheckedAlone) {
  std::string text = gradient_like_text(730, 1088, 1360);
  text += "\nprogram more\n  y = g[M,N]ᵀ · x[M,K]\n  store dw[N,K] += y\n";
  const CheckedResults c = held_against_text(executed_text(text));
  EXPECT_FALSE(c.passed());
  EXPECT_THAT(c.why_not, testing::HasSubstr("program more: it stores where another"));
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
