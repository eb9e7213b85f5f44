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
