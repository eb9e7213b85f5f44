// What sums of products of codes lose on Hopper's tensor cores: docs/numerics.md has these numbers.
// The tensor cores are modelled here in fp64: 32 products and the sum are lined up with the largest
// of them, and what lies 13 bits below its leading one is dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace fuseline::gpu {
namespace {

constexpr int kProducts = 32, kBits = 13, kRows = 24;

double e4m3_of(double x) {
  int exponent = 0;
  std::frexp(std::abs(x), &exponent);
  const double step = std::ldexp(1, std::max(exponent, -5) - 4);
  return std::copysign(std::min(std::nearbyint(std::abs(x) / step) * step, 448.0), x);
}

// Rows of codes; the largest of each is 448, as quantise_rows makes them.
std::vector<double> rows_of_codes(int K, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<double> codes;
  for (int r = 0; r < kRows; ++r) {
    std::vector<double> row(static_cast<std::size_t>(K));
    double most = 0;
    for (double& x : row) {
      x = normal(random);
      most = std::max(most, std::abs(x));
    }
    for (const double x : row) codes.push_back(e4m3_of(x / most * 448));
  }
  return codes;
}

double one_step(double sum, const double* a, const double* b) {
  std::array<double, kProducts + 1> terms{};
  terms[kProducts] = sum;
  for (int i = 0; i < kProducts; ++i) terms[static_cast<std::size_t>(i)] = a[i] * b[i];
  double most = 0;
  for (const double x : terms) most = std::max(most, std::abs(x));
  int exponent = 0;
  std::frexp(most, &exponent);
  const double unit = std::ldexp(1, exponent - 1 - kBits);
  double units = 0;
  for (const double x : terms) units += std::trunc(x / unit);
  return units * unit;
}

// Relative L2 error of products whose sums begin anew every `part` codes.
double error_of(int K, int part) {
  std::mt19937 random(1);
  const std::vector<double> a = rows_of_codes(K, random), b = rows_of_codes(K, random);
  double difference = 0, size = 0;
  for (int m = 0; m < kRows; ++m)
    for (int n = 0; n < kRows; ++n) {
      const double* x = a.data() + static_cast<std::ptrdiff_t>(m) * K;
      const double* y = b.data() + static_cast<std::ptrdiff_t>(n) * K;
      double exact = 0, all = 0, sum = 0;
      for (int k = 0; k < K; ++k) exact += x[k] * y[k];
      for (int k = 0; k < K; k += kProducts) {
        sum = one_step(sum, x + k, y + k);
        if ((k + kProducts) % part == 0) {
          all += sum;
          sum = 0;
        }
      }
      all += sum;
      difference += (all - exact) * (all - exact);
      size += exact * exact;
    }
  return std::sqrt(difference / size);
}

TEST(ShortSums, LoseWhatTheDocumentSays) {
  struct Row {
    int K;
    double one, of_512, of_128;
  };
  for (const Row& row : {Row{1024, 5.5e-4, 3.4e-4, 1.4e-4}, Row{4096, 1.4e-3, 3.3e-4, 1.2e-4},
                         Row{11008, 2.5e-3, 3.4e-4, 1.3e-4}}) {
    EXPECT_NEAR(error_of(row.K, row.K) / row.one, 1, 0.15) << row.K;
    EXPECT_NEAR(error_of(row.K, 512) / row.of_512, 1, 0.15) << row.K;
    EXPECT_NEAR(error_of(row.K, 128) / row.of_128, 1, 0.15) << row.K;
  }
}

}  // namespace
}  // namespace fuseline::gpu
