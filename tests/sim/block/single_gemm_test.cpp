// One library GEMM: where its operands are, and how long it runs.
#include "sim/block/single_gemm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>

namespace fuseline {
namespace {

KernelEstimate library_gemm_on(std::int64_t m, std::int64_t n, std::int64_t k, Operands operands,
                               Run run = Run::benchmark, const char* gpu = "h200") {
  return estimate_library_gemm({.m = m, .n = n, .k = k, .operands = operands, .run = run},
                               load_gpu(gpu));
}

TEST(SingleGemm, HotOperandsComeFromL2AndSmallRotatingOnesToo) {
  // 2 MB of weights: five copies stay in L2. 90 MB: not one does.
  EXPECT_EQ(library_gemm_on(16, 1024, 1024, Operands::hot).hbm_read, Bytes());
  EXPECT_EQ(library_gemm_on(16, 1024, 1024, Operands::rotating).hbm_read, Bytes());
  EXPECT_GE(library_gemm_on(16, 1024, 1024, Operands::cold).hbm_read, Bytes(2 * 1024 * 1024));
  EXPECT_GE(library_gemm_on(16, 4096, 11008, Operands::rotating).hbm_read, Bytes(2 * 4096 * 11008));
}

TEST(SingleGemm, WarmerOperandsReadLessAndHotOnesAreFaster) {
  for (const auto& [m, n, k] : {std::tuple{1, 32, 64},
                                {7, 2112, 7168},
                                {333, 1000, 555},
                                {2048, 4096, 4096},
                                {8191, 512, 64}}) {
    const KernelEstimate cold = library_gemm_on(m, n, k, Operands::cold, Run::burst);
    const KernelEstimate rotating = library_gemm_on(m, n, k, Operands::rotating, Run::burst);
    const KernelEstimate hot = library_gemm_on(m, n, k, Operands::hot, Run::burst);
    EXPECT_LE(hot.hbm_read, rotating.hbm_read) << m;
    EXPECT_LE(rotating.hbm_read, cold.hbm_read) << m;
    EXPECT_LE(hot.time, cold.time) << m;
  }
}

// Nothing reads the result, and it is stored all the same.
TEST(SingleGemm, AnyOperandsStoreTheResult) {
  const Bytes all(2 * (8192 * 64 + 1024 * 64 + 8192 * 1024));
  for (const Operands operands : {Operands::cold, Operands::rotating, Operands::hot}) {
    const KernelEstimate e = library_gemm_on(8192, 1024, 64, operands);
    EXPECT_EQ(e.compulsory, all);
    EXPECT_GE(e.l2, all);
  }
  // 256 MiB do not stay in L2.
  EXPECT_GE(library_gemm_on(8192, 16384, 64, Operands::hot).hbm_write,
            Bytes(std::int64_t{8192} * 16384));
}

// A table's benchmark drops each result, so that the next call writes to the same memory: a result
// that fits L2 is overwritten there, however many copies of w take turns.
TEST(SingleGemm, ATableKeepsOneResult) {
  const Bytes result(2 * 8192 * 1024);
  EXPECT_EQ(library_gemm_on(8192, 1024, 64, Operands::rotating).hbm_write, Bytes());
  EXPECT_EQ(library_gemm_on(8192, 1024, 64, Operands::hot).hbm_write, Bytes());
  EXPECT_GE(library_gemm_on(8192, 1024, 64, Operands::cold).hbm_write, result);
  // 256 MiB do not fit.
  EXPECT_GE(library_gemm_on(8192, 16384, 64, Operands::rotating).hbm_write,
            Bytes(std::int64_t{8192} * 16384));
}

// Published median of 10 serving frameworks on an H100 SXM: 2.58 us, 2.55 to 3.24.
TEST(SingleGemm, TheShortestKernelIsAsShortAsPublished) {
  const double us =
      to_us(library_gemm_on(1, 32, 32, Operands::rotating, Run::benchmark, "h100").time);
  EXPECT_NEAR(us, 2.58, 0.2 * 2.58);
}

TEST(SingleGemm, OnlyLongRunsMeetThePowerLimit) {
  const Seconds burst = library_gemm_on(8192, 8192, 8192, Operands::cold, Run::burst).time;
  const Seconds sustained = library_gemm_on(8192, 8192, 8192, Operands::cold, Run::sustained).time;
  EXPECT_GT(sustained / burst, 1.05);  // measured on an H200: 1.13 to 1.17
  EXPECT_LT(sustained / burst, 1.25);
  EXPECT_EQ(library_gemm_on(1, 4096, 4096, Operands::cold, Run::burst).time,
            library_gemm_on(1, 4096, 4096, Operands::cold, Run::sustained).time);
}

}  // namespace
}  // namespace fuseline
