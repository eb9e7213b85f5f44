// Sizes of printed texts as letters.
#include "model/programs/lettered_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/programs/gradient.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

const char* const kPrinted =
    "fuse 1\n\ninput x[M,D] = [300, 64], bf16\nweight w[2F,D] = [80, 64], bf16\n"
    "input g[M,F] = [300, 40], bf16\nactivation p[40, 3], fp32\n\nprogram a\n"
    "  for each tile of [300, 40]                          # rows\n"
    "  g = load g[M,F]\n  store p[40,3] = sum(g, of = columns)   # fp32\n";

TEST(LetteredText, NamesSizesAndPartsOf128) {
  EXPECT_EQ(lettered_text(kPrinted),
            "fuse 1\nsize M = 300, D = 64, F = 40\n\ninput x[M,D], bf16\nweight w[2F,D], bf16\n"
            "input g[M,F], bf16\nactivation p[F,⌈M/128⌉], fp32\n\nprogram a\n"
            "  for each tile of [M, F]                             # rows\n"
            "  g = load g[M,F]\n  store p[F,⌈M/128⌉] = sum(g, of = columns)  # fp32\n");
}

// 64 is what two letters may mean.
TEST(LetteredText, LeavesNumbersThatSeveralLettersHave) {
  const std::string text =
      lettered_text("fuse 1\ninput x[M,D] = [64, 64], bf16\nactivation y[64, 7], bf16\n");
  EXPECT_EQ(text, "fuse 1\nsize M = 64, D = 64\ninput x[M,D], bf16\nactivation y[64,7], bf16\n");
}

TEST(LetteredText, LeavesATextWhoseLetterHasTwoSizes) {
  const std::string text = "fuse 1\ninput x[M,D] = [8, 4], bf16\ninput y[D,M] = [8, 4], bf16\n";
  EXPECT_EQ(lettered_text(text), text);
}

// So a gradient can be checked at other sizes than those it was made for.
TEST(LetteredText, AGradientCanHaveOtherSizes) {
  const ProgramFile forward = read_program_text(
      "fuse 1\nsize M = 512, D = 96, F = 640\nlet swish(x) = x * sigmoid(1.702 * x)\n"
      "input x[M,D]\nweight w[F,D]\nweight b[1,F]\noutput act[M,F]\n\nprogram up\n"
      "  y = x[M,D] · w[F,D]ᵀ\n  bias = load_cols b[1,F]\n  z = y + bias\n  a = swish(z)\n"
      "  store act[M,F] = a\n",
      "forward");
  for (const Products products : {Products::again, Products::kept}) {
    std::string text = gradient_text(program_gradient(forward, {}, products).plan, "");
    const std::string sizes = "size M = 512, ";
    ASSERT_THAT(text, HasSubstr(sizes));
    text.replace(text.find(sizes), sizes.size(), "size M = 1000, ");
    const ProgramFile other = read_program_text(text, "gradient");
    ASSERT_TRUE(other.readable()) << text;
    EXPECT_TRUE(check_programs(other).empty()) << text;
    const Tensor& parts = other.plan.graph.tensor(*other.plan.graph.find_tensor("d_b_parts"));
    EXPECT_EQ(parts.rows, 640);
    EXPECT_EQ(parts.cols, 8);
  }
}

}  // namespace
}  // namespace fuseline
