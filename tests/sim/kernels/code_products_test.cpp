// Products of 8-bit codes beside products_of_codes.csv: what PyTorch's took on an H200, at the
// shapes of LLaMA-2-7B, to which two rates were fitted, and of LLaMA-3-8B, to which nothing was.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/csv.h"
#include "base/data_dir.h"
#include "model/activation_formats/stored_activation.h"
#include "sim/block/single_gemm.h"

namespace fuseline {
namespace {

using Shapes = std::set<std::pair<std::int64_t, std::int64_t>>;  // N, K
const Shapes kFitted = {{12288, 4096}, {4096, 4096}, {22016, 4096}, {4096, 11008}};
const Shapes kOthers = {{6144, 4096}, {28672, 4096}, {4096, 14336}};

struct Errors {
  double mean = 0;
  double bias = 0;
  int count = 0;
};

// Of the products of `mode` with rows in [least, most].
Errors errors_of(const std::string& mode, const std::string& format, const Shapes& shapes,
                 std::int64_t least, std::int64_t most) {
  const Gpu gpu = load_gpu("h200");
  const CsvTable table((data_dir() / "measurements/h200-open/products_of_codes.csv").string());
  Errors e;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    LibraryGemm gemm{
        .m = table.whole(row, "m"), .n = table.whole(row, "n"), .k = table.whole(row, "k")};
    if (table.text(row, "mode") != mode || gemm.m < least || gemm.m > most ||
        !shapes.contains({gemm.n, gemm.k}))
      continue;
    gemm.activations = parse_stored_activation(format, "", "");
    gemm.weights = parse_stored_weight(weights_for(gemm.activations), "", "");
    const double predicted = to_us(estimate_library_gemm(gemm, gpu).time);
    const double error = predicted / table.positive(row, "us_median") - 1;
    e.mean += std::abs(error);
    e.bias += error;
    ++e.count;
  }
  e.mean /= e.count;
  e.bias /= e.count;
  return e;
}

// The errors that the constants' sources and chapter 9 state, in their last digit.
constexpr double kDigit = 0.0006;

TEST(CodeProducts, OfFittedShapesTakeWhatWasMeasured) {
  const Errors tensor = errors_of("fp8_tensor", "fp8", kFitted, 512, 8192);
  EXPECT_EQ(tensor.count, 13);
  EXPECT_NEAR(tensor.mean, 0.037, kDigit);
  EXPECT_NEAR(errors_of("fp8_rows", "fp8", kFitted, 512, 8192).mean, 0.043, kDigit);
  EXPECT_NEAR(errors_of("int8", "int8", kFitted, 512, 8192).mean, 0.059, kDigit);
}

TEST(CodeProducts, OfOtherShapesToo) {
  const Errors tensor = errors_of("fp8_tensor", "fp8", kOthers, 512, 8192);
  EXPECT_EQ(tensor.count, 9);
  EXPECT_NEAR(tensor.mean, 0.036, kDigit);
  EXPECT_NEAR(errors_of("fp8_rows", "fp8", kOthers, 512, 8192).mean, 0.055, kDigit);
  EXPECT_NEAR(errors_of("int8", "int8", kOthers, 512, 8192).mean, 0.068, kDigit);
}

// Nothing was fitted to products of 128-column groups: the constant of rescaling is assumed.
TEST(CodeProducts, OfGroupsAreTooFast) {
  const Errors e = errors_of("fp8_block", "fp8-block", kFitted, 512, 8192);
  EXPECT_EQ(e.count, 6);
  EXPECT_NEAR(e.bias, -0.059, kDigit);
}

// Few rows wait for the weight. One scale takes what it should; PyTorch's kernels with a scale for
// each row take 1.3 and 1.7 times that.
TEST(CodeProducts, OfFewRowsAreMemoryBound) {
  Shapes all = kFitted;
  all.insert(kOthers.begin(), kOthers.end());
  EXPECT_LT(errors_of("fp8_tensor", "fp8", all, 1, 16).mean, 0.06);
  EXPECT_LT(errors_of("fp8_tensor", "fp8", all, 128, 128).mean, 0.06);
  EXPECT_NEAR(1 / (1 + errors_of("fp8_rows", "fp8", all, 128, 128).bias), 1.3, 0.05);
  EXPECT_NEAR(1 / (1 + errors_of("fp8_rows", "fp8", all, 1, 16).bias), 1.7, 0.05);
}

}  // namespace
}  // namespace fuseline
