// Programs whose verification once went wrong, and what it refuses.
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/programs/legality.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "sim/programs/verify_programs.h"

namespace fuseline {
namespace {

VerifiedPrograms verified(const std::string& lines) {
  const ProgramFile file = read_program_text("fuse 1\n" + lines, "text");
  const std::vector<Diagnosis> wrong = check_programs(file);
  EXPECT_TRUE(wrong.empty()) << format_problem(wrong.front().problem);
  return verify_programs(whole_plan(file), load_gpu("h200"), 1, {.threads = 1});
}

void expect_verified(const std::string& lines) {
  const VerifiedPrograms v = verified(lines);
  for (const VerifiedTensor& t : v.tensors)
    EXPECT_TRUE(t.agrees()) << t.name << ": " << t.error << ", allowed " << t.allowed;
  for (const VerifiedKernel& k : v.kernels)
    EXPECT_TRUE(k.differing.empty()) << k.name << ": bytes of " << k.differing.front();
}

constexpr const char* kProduct =
    "size M = 18, K = 40, N = 400\n"
    "input x[M,K]\nweight w[N,K]\ntable t[M,N], fp32\ninput r[M,1]\noutput h[M,N]\n";

// The columns of a table were turned once for each map of it.
TEST(VerifyPrograms, TakesTheRightColumnsOfAMapOfATable) {
  expect_verified(std::string(kProduct) +
                  "program p\n  y = x[M,K] · w[N,K]ᵀ\n  a = load_table t[M,N]\n  b = a + 0.5\n"
                  "  c = -b\n  d = y * c\n  store h[M,N] = d\n");
}

// Only the first tile of a row stores the vector, so that only it loads one.
TEST(VerifyPrograms, CountsVectorsThatOneTileTakes) {
  expect_verified(
      "size M = 40, N = 4000\ninput r[M,1]\noutput s[M,1]\ninput c[1,N]\noutput d[1,N]\n"
      "program rows\n  for each tile of [M, N]\n  a = load_rows r[M,1]\n  store_rows s[M,1] = a\n"
      "program columns\n  for each tile of [M, N]\n  a = load_cols c[1,N]\n"
      "  store_cols d[1,N] = a\n");
}

// Tiles that do not have the columns of a slice load nothing for it.
TEST(VerifyPrograms, CountsWhatASliceNeeds) {
  expect_verified(
      "size M = 40\ninput x[M,512]\noutput h[M,64]\n"
      "program p\n  for each tile of [M, 512]\n  a = load x[M,512]\n  b = a[:, 0:64]\n"
      "  store h[M,64] = b\n");
}

// The same of the taps of a convolution, of rows before a sequence, and of rows that add up.
TEST(VerifyPrograms, CountsWhatASliceNeedsOfOtherRows) {
  expect_verified(
      "size M = 8, N = 305\ninput x[M,N]\nweight w[M,N], fp32\noutput h[M,152], fp32\n"
      "program p\n  for each tile of [M, N]\n"
      "  a = convolve_back(x[M,N], w[M,N], tokens = 8, taps = 8)\n  b = a[:, 0:152]\n"
      "  store h[M,152] = b\n");
  expect_verified(
      "size M = 8, N = 305\ninput x[M,N]\nweight w[3,N], fp32\ninput s[4,N]\n"
      "output h[M,152], fp32\nprogram p\n  for each tile of [M, N]\n"
      "  a = convolve_rows(x[M,N], w[3,N], before = s[4,N], batch = 2, tokens = 4, taps = 3)\n"
      "  b = a[:, 0:152]\n  store h[M,152] = b\n");
  expect_verified(
      "size M = 33, N = 296\ninput x[M,N]\noutput h[M,148], fp32\n"
      "program p\n  for each tile of [M, N]\n  a = gather_sum(x[M,N], period = 33)\n"
      "  b = a[:, 0:148]\n  store h[M,148] = b\n");
}

// A group of 192 columns behind a pair map is made of 384 columns of the index space.
TEST(VerifyPrograms, KeepsAGroupBehindAPairMapInOneTile) {
  expect_verified(
      "size M = 31\ninput x[M,768]\noutput h[M,384]\n"
      "program p\n  for each tile of [M, 768]\n  a = load x[M,768]\n  b = geglu(a pairs)\n"
      "  c = group_sum(b, group = 192)\n  store h[M,384] = c\n");
}

// One number is most of the result, and only its roundings count: a single draw of them may be next
// to nothing.
TEST(VerifyPrograms, AllowWhatRoundingsChangeOfOneNumber) {
  expect_verified(
      "size M = 1, K = 30, N = 176\ninput t0[M,K], fp16\nweight t1[N,K]\noutput h[M,N], fp32\n"
      "program p\n  y = t0[M,K] · t1[N,K]ᵀ\n  a = gelu(y)\n  b = relu(y)\n  c = a - b\n"
      "  d = 1 / c\n  store h[M,N] = d\n");
}

// log is 0 or a rounding above it where the slope of GELU is nearly one: chance decides about step.
TEST(VerifyPrograms, AllowWhatRoundingsDecide) {
  expect_verified(
      "size M = 38, K = 10, N = 240\n"
      "let f(x) = step(min(x, 3)) * erf(0.1 - x)\ninput t0[M,K]\nweight t1[N,K]\n"
      "output h[M,176]\nprogram p\n  y = t0[M,K] · t1[N,K]ᵀ\n  a = gelu(y)\n"
      "  b = gelu_slope(a)\n  c = log(b)\n  d = c[:, 0:176]\n  e = f(d)\n  g = tanh(e)\n"
      "  store h[M,176] = g\n");
}

// The difference of near numbers is as wrong as their roundings make it: that is allowed, and said.
TEST(VerifyPrograms, AllowWhatRoundingsChange) {
  const std::string lines =
      "size M = 64, K = 64, N = 128\ninput x[M,K]\nweight w[N,K]\noutput h[M,N], fp32\n"
      "program p\n  y = x[M,K] · w[N,K]ᵀ\n  a = y + 1000000\n  b = a + -1000000\n"
      "  store h[M,N] = b\n";
  expect_verified(lines);
  // A hundred times what the formats and the sums alone allow.
  EXPECT_GT(verified(lines).tensors.front().allowed, 1e-3);
}

// Softmax as a textbook writes it: a tile divided by one number for each row.
TEST(VerifyPrograms, DivideATileByItsRowsSums) {
  expect_verified(
      "size M = 37, N = 90\ninput s[M,N]\noutput p[M,N]\n"
      "program softmax\n  for each row of [M, N]\n  a = load s[M,N]\n  m = row_max(a)\n"
      "  c = a - m\n  e = exp(c)\n  z = row_sum(e)\n  q = e / z\n  store p[M,N] = q\n");
}

TEST(VerifyPrograms, ChoosesRowsThatThereAre) {
  expect_verified(
      "size M = 64, D = 32\ninput e[300,D]\ninput ids[M,1]\noutput h[M,D]\n"
      "program p\n  for each tile of [M, D]\n  a = gather(e[300,D], ids[M,1])\n"
      "  store h[M,D] = a\n");
}

TEST(VerifyPrograms, RefuseNumbersThatAreNotFinite) {
  const std::string lines = std::string(kProduct) +
                            "program p\n  y = x[M,K] · w[N,K]ᵀ\n  a = log(y)\n  store h[M,N] = a\n";
  try {
    (void)verified(lines);
    FAIL() << "logarithms of negative numbers were verified";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().field, "program p");
    EXPECT_EQ(e.problem().value, "h");
  }
}

}  // namespace
}  // namespace fuseline
