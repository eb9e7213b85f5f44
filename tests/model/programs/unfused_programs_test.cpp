// Programs taken apart: the same maths, a kernel for each line.
#include "model/programs/unfused_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/programs/own_plan.h"

namespace fuseline {
namespace {

ProgramFile programs_of(const std::string& text) {
  ProgramFile file = read_program_text(text, "test.fuse");
  EXPECT_TRUE(file.readable());
  return file;
}

std::vector<std::string> lines_of_kernels(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Kernel& k : plan.kernels) texts.push_back(print_program(plan.graph, k.phases.front()));
  return texts;
}

constexpr const char* kUnfusedSizes = "fuse 1\nsize M = 64, N = 256, K = 128\n";

TEST(UnfusedPrograms, EachTileOfAnEpilogueIsAKernel) {
  const ProgramFile file = programs_of(
      std::string(kUnfusedSizes) +
      "input x[M,K]\nweight w[N,K]\nweight b[1,N]\ninput r[M,N]\noutput y[M,N]\n"
      "activation s[M,⌈N/128⌉], fp32\noutput total[M,1], fp32\n\nprogram product\n  y = x[M,K] · "
      "w[N,K]ᵀ\n"
      "  b = load_cols b[1,N]\n  z = y + b\n  r = load r[M,N]\n  h = z + r\n  store y[M,N] = h\n"
      "  store s[M,⌈N/128⌉] = sum_squares(h)\n\nprogram finish\n"
      "  for each row of [M, ⌈N/128⌉]\n  p = load s[M,⌈N/128⌉]\n  t = row_sum(p)\n"
      "  store_rows total[M,1] = t\n");
  const std::optional<Plan> plan = unfused_programs(file);
  ASSERT_TRUE(plan);
  const std::vector<std::string> texts = lines_of_kernels(*plan);
  ASSERT_EQ(texts.size(), 5U);  // the product, + b, + r, the sums, their finisher
  EXPECT_THAT(texts[0], testing::HasSubstr("store product_value0"));
  EXPECT_THAT(texts[1], testing::HasSubstr("load_cols b"));
  EXPECT_THAT(texts[2], testing::HasSubstr("store y"));
  EXPECT_THAT(texts[3], testing::HasSubstr("load y"));
  EXPECT_THAT(check_plan(*plan), testing::IsEmpty());
}

TEST(UnfusedPrograms, NumbersOfRowsAreMadeAgain) {
  const ProgramFile file = programs_of(
      std::string(kUnfusedSizes) +
      "input x[M,N]\ninput s[M,1], fp32\noutput y[M,N]\n\nprogram scaled\n"
      "  for each tile of [M, N]\n  x = load x[M,N]\n  s = load_rows s[M,1]\n  i = 1 / s\n"
      "  a = x * i\n  z = a * i\n  store y[M,N] = z\n");
  const std::optional<Plan> plan = unfused_programs(file);
  ASSERT_TRUE(plan);
  const std::vector<std::string> texts = lines_of_kernels(*plan);
  // The program was a stream alone: a kernel for each of its two tiles.
  ASSERT_EQ(texts.size(), 2U);
  for (const std::string& text : texts) EXPECT_THAT(text, testing::HasSubstr("1 /"));
}

TEST(UnfusedPrograms, WhatIsApartStaysAsItIs) {
  EXPECT_FALSE(
      unfused_programs(programs_of(std::string(kUnfusedSizes) +
                                   "input x[M,K]\nweight w[N,K]\noutput y[M,N]\n\nprogram product\n"
                                   "  y = x[M,K] · w[N,K]ᵀ\n  store y[M,N] = y\n")));
  EXPECT_FALSE(
      unfused_programs(programs_of(std::string(kUnfusedSizes) +
                                   "input x[M,N]\noutput s[M,1], fp32\n\nprogram sums\n"
                                   "  for each row of [M, N]\n  x = load x[M,N]\n  t = row_sum(x)\n"
                                   "  u = t * 2\n  store_rows s[M,1] = u\n")));
}

}  // namespace
}  // namespace fuseline
