// Row vectors that meet a matrix of weights: one loop over the matrix for all of them, and numbers
// of rows that lie side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/operators/all_operators.h"
#include "model/policy.h"
#include "model/programs/legality.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

// A norm's weight and bias meet the weights of the product behind it in every step of training. As
// two products of one row they read these twice: 131 of the 2,125 us of a block of GPT-J 6B.
TEST(VectorProducts, OfOneMatrixShareAKernelThatReadsItOnce) {
  std::mt19937 random(7);
  int kernels = 0;
  for (int i = 0; i < 20; ++i) {
    ModelConfig config = test::random_model(random);
    const Plan plan = make_plan("coda", config, test::train(1, 5));
    for (const Kernel& k : plan.kernels) {
      const auto product = [&](OpId id) {
        return plan.graph.op(id).kind == operators::vector_product;
      };
      const auto products = std::ranges::count_if(k.ops, product);
      if (products == 0) continue;
      ++kernels;
      EXPECT_EQ(products, 2) << k.name;
      EXPECT_EQ(products, std::ranges::ssize(k.ops)) << k.name;
      const Operand w = plan.graph.op(k.ops.front()).reads[0];
      const std::vector<Operand> read = loads(k.phases.front());
      EXPECT_EQ(std::ranges::count(read, w), 1) << k.name;
    }
    EXPECT_TRUE(std::ranges::none_of(plan.graph.ops(), [&](const Op& op) {
      return op.kind == operators::gemm && op.writes[0].rows == 1;
    })) << config.name;
  }
  EXPECT_GT(kernels, 8);  // two a block of each model with LayerNorm
}

ProgramFile flat_numbers(const std::string& tensors, const std::string& program) {
  return read_program_text(
      "fuse 1\nsize M = 64, N = 256, K = 128\ninput x[M,K]\n" + tensors + "\n\n" + program, "text");
}

constexpr const char* kRowsLoop =
    "program vector\n  for each row of [M, K]\n  x = load x[M,K]\n  v = load_cols v[1,K]\n  p = x "
    "* "
    "v\n  t = row_sum(p)\n  s = load_rows s[1,M]\n  a = t + s\n  store_rows t[1,M] = a\n";

TEST(VectorProducts, NumbersOfRowsMayLieSideBySideForALoopOverRows) {
  const ProgramFile file =
      flat_numbers("input v[1,K]\ninput s[1,M], fp32\noutput t[1,M], fp32", kRowsLoop);
  ASSERT_TRUE(file.readable()) << format_problem(file.diagnoses.front().problem);
  for (const Diagnosis& d : check_programs(file)) ADD_FAILURE() << format_problem(d.problem);
}

// One number too few, and an epilogue, which takes the distance between rows from the matrix.
TEST(VectorProducts, NumbersSideBySideAreRefusedElsewhere) {
  const auto refused = [](const ProgramFile& file) {
    std::string text;
    for (const Diagnosis& d : file.readable() ? check_programs(file) : file.diagnoses)
      text += format_problem(d.problem);
    return text;
  };
  std::string short_loop = kRowsLoop;
  short_loop.replace(short_loop.find("s[1,M]"), 6, "s[1,N]");
  EXPECT_THAT(
      refused(flat_numbers("input v[1,K]\ninput s[1,N], fp32\noutput t[1,M], fp32", short_loop)),
      HasSubstr("vector along rows"));
  const std::string product = "program scaled\n  y = x[M,K] · w[N,K]ᵀ\n";
  EXPECT_THAT(refused(flat_numbers("weight w[N,K]\ninput s[1,M], fp32\noutput y[M,N]",
                                   product + "  s = load_rows s[1,M]\n  z = y * s\n"
                                             "  store y[M,N] = z\n")),
              HasSubstr("vector along rows"));
  EXPECT_THAT(
      refused(flat_numbers("weight w[N,K]\ninput s[M,1], fp32\noutput t[1,M], fp32\noutput y[M,N]",
                           product + "  s = load_rows s[M,1]\n  z = y * s\n  store y[M,N] = z\n"
                                     "  store_rows t[1,M] = s\n")),
      HasSubstr("vector along rows"));
}

}  // namespace
}  // namespace fuseline
