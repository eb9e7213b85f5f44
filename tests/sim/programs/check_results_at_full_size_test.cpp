// Results of programs with so many products that they are held against fp64 program by program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/programs/executed_programs.h"

namespace fuseline {
namespace {

using test::executed_text;
using test::ExecutedPrograms;
using test::gradient_like_text;
using test::held_against_text;
using test::tensor_of;

const VerifiedTensor& checked_tensor(const CheckedResults& c, const std::string& name) {
  const auto found = std::ranges::find(c.tensors, name, &VerifiedTensor::name);
  EXPECT_NE(found, c.tensors.end()) << name;
  return *found;
}

// Each fault is the fault of the program that made it, and of no other.
TEST(CheckResultsAtFullSize, GradientsAndTheirFaultsAreFoundProgramByProgram) {
  // 2^30 multiplications and some more; the last block has 90 rows.
  ExecutedPrograms run = executed_text(gradient_like_text(730, 1088, 1360));
  const CheckedResults right = held_against_text(run);
  EXPECT_EQ(right.why_not, "");
  EXPECT_TRUE(right.passed());
  EXPECT_TRUE(right.alone);
  EXPECT_EQ(right.tensors.size(), 4U);
  const VerifiedTensor& dw = checked_tensor(right, "dw");
  EXPECT_EQ(dw.of_rows, 1088);
  EXPECT_EQ(dw.rows, (std::int64_t{1} << 30) / (730 * 1360));
  EXPECT_EQ(checked_tensor(right, "parts").of_rows, 730);

  const std::vector<float> zeros(1360);
  std::vector<float> row(1360);
  tensor_of(run, "dw").read(1087, 0, 1360, row.data());
  tensor_of(run, "dw").write(1087, 0, 1360, zeros.data());
  const CheckedResults c = held_against_text(run);
  EXPECT_FALSE(c.passed());
  EXPECT_FALSE(checked_tensor(c, "dw").agrees());
  for (const char* others : {"g", "parts", "db"})
    EXPECT_TRUE(checked_tensor(c, others).agrees()) << others;
  // A partial sum of the block that is not whole.
  tensor_of(run, "dw").write(1087, 0, 1360, row.data());
  for (std::int64_t column = 0; column < 1088; ++column)
    tensor_of(run, "parts").write(column, 5, 1, zeros.data());
  const CheckedResults sums = held_against_text(run);
  EXPECT_FALSE(checked_tensor(sums, "parts").agrees());
  EXPECT_FALSE(checked_tensor(sums, "db").agrees());  // the sum of other partials than are there
  EXPECT_TRUE(checked_tensor(sums, "dw").agrees());
}

TEST(CheckResultsAtFullSize, WhatTwoProgramsStoreInOnePlaceIsNotCheckedAlone) {
  std::string text = gradient_like_text(730, 1088, 1360);
  text += "\nprogram more\n  y = g[M,N]ᵀ · x[M,K]\n  store dw[N,K] += y\n";
  const CheckedResults c = held_against_text(executed_text(text));
  EXPECT_FALSE(c.passed());
  EXPECT_THAT(c.why_not, testing::HasSubstr("program more: it stores where another"));
}

}  // namespace
}  // namespace fuseline
