// Random weights in every number format: the error of every weight is at most what its group's
// steps allow, whatever the size and the number of threads.
#include "sim/executor/quantise_weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/formats/weight_format.h"

namespace fuseline::executor {
namespace {

constexpr std::int64_t N = 150, K = 202, kMatrices = 2;

float original(std::int64_t n, std::int64_t k) {
  const double angle = static_cast<double>(n * 7919 + k * 104729 % 1009);
  return static_cast<float>(0.03 * std::sin(angle) * (k % 37 == 5 ? 9 : 1));
}

void fill(std::int64_t n, float* row) {
  for (std::int64_t k = 0; k < K; ++k) row[k] = original(n, k);
}

// What the codes of row n of a matrix are worth.
std::vector<double> worth(const StoredWeight& weight, const QuantisedWeight& q, std::int64_t matrix,
                          std::int64_t n) {
  std::vector<float> codes(K);
  q.codes->read(matrix * N + n, 0, K, codes.data());
  std::vector<double> values(codes.begin(), codes.end());
  RowScales<double> row;
  std::vector<std::vector<double>> numbers;
  const std::vector<ScaleTensor> beside = weight.beside(N, K);
  for (std::size_t i = 0; i < beside.size(); ++i) {
    const ScaleTensor& t = beside[i];
    std::vector<float> of_row(static_cast<std::size_t>(t.cols));
    const bool one = t.kind == ScaleKind::tensor_scale;
    q.beside[i]->read(one ? 0 : matrix * t.rows + weight.scale_row(n), 0, t.cols, of_row.data());
    numbers.emplace_back(of_row.begin(), of_row.end());
  }
  for (std::size_t i = 0; i < beside.size(); ++i) {
    if (beside[i].kind == ScaleKind::scale) row.scale = numbers[i].data();
    if (beside[i].kind == ScaleKind::zero_point) row.zero_point = numbers[i].data();
    if (beside[i].kind == ScaleKind::tensor_scale) row.tensor_scale = numbers[i][0];
  }
  dequantise(weight, row, 0, K, values.data());
  return values;
}

// Of a group with that largest magnitude: half of the widest step of its codes, and what rounding
// of the scale moves.
double allowed_error(const StoredWeight& weight, double magnitude, bool saturates) {
  const WeightFormat& f = *weight.format;
  const double scale_error = unit_roundoff(f.scale) * 2;
  double step = 0;
  switch (f.element.value) {
    case Dtype::e4m3:
      step = 32.0 / 448;
      break;
    case Dtype::e2m1:
      step = 2.0 / 6;
      break;
    default:
      // Zero points: the range of the group, at most twice its magnitude, in 2·largest + 1 steps.
      step = f.zero_points ? 2 / (2 * f.largest + 1) : 1 / f.largest;
  }
  // A scale that is a power of two is up to two times too small, and the largest number is cut to
  // 6 of at most 8.
  if (f.power_of_two) return magnitude * (saturates ? 0.25 : 2.0 / 4 / 2);
  return magnitude * (step / 2 + scale_error + (f.zero_points ? step / 2 : 0));
}

// Of the group that begins in column k and holds row n of the matrix that begins in row `first`.
double magnitude_of_group(std::int64_t first, std::int64_t n, std::int64_t k, std::int64_t height,
                          std::int64_t width) {
  double magnitude = 0;
  const std::int64_t begin = n / height * height;
  for (std::int64_t r = begin; r < std::min(N, begin + height); ++r)
    for (std::int64_t c = k; c < std::min(K, k + width); ++c)
      magnitude = std::max(magnitude, std::fabs(static_cast<double>(original(first + r, c))));
  return magnitude;
}

TEST(QuantiseWeight, IsWithinTheStepsOfEveryGroup) {
  std::vector<std::string> names = weight_format_names();
  for (const char* grouped : {"int4:16", "int4-zero:32", "int8:50"}) names.emplace_back(grouped);
  for (const std::string& name : names) {
    const StoredWeight weight = parse_stored_weight(name, "", "");
    const QuantisedWeight q = quantise_weight(weight, kMatrices, N, K, fill, {});
    ASSERT_EQ(q.beside.size(), weight.beside(N, K).size()) << name;
    const std::int64_t width = weight.group == 0 ? K : weight.group;
    const std::int64_t height = weight.format->group_rows;
    bool differs = false;
    for (std::int64_t matrix = 0; matrix < kMatrices; ++matrix) {
      for (std::int64_t n = 0; n < N; ++n) {
        const std::vector<double> got = worth(weight, q, matrix, n);
        double magnitude = 0;
        for (std::int64_t k = 0; k < K; ++k) {
          if (k % width == 0) magnitude = magnitude_of_group(matrix * N, n, k, height, width);
          const auto want = static_cast<double>(original(matrix * N + n, k));
          const double error = std::fabs(got[static_cast<std::size_t>(k)] - want);
          ASSERT_LE(error, allowed_error(weight, magnitude, true)) << name << ' ' << n << ' ' << k;
          differs = differs || error > 0;
        }
        if (n > 12) n += 10;  // every size of group has been met
      }
    }
    EXPECT_TRUE(differs) << name << " rounds nothing";
  }
}

TEST(QuantiseWeight, IsTheSameOnAnyNumberOfThreads) {
  for (const std::string& name : weight_format_names()) {
    const StoredWeight weight = parse_stored_weight(name, "", "");
    const QuantisedWeight one = quantise_weight(weight, kMatrices, N, K, fill, {.threads = 1});
    const QuantisedWeight four = quantise_weight(weight, kMatrices, N, K, fill, {.threads = 4});
    EXPECT_EQ(to_doubles(*one.codes), to_doubles(*four.codes)) << name;
    for (std::size_t i = 0; i < one.beside.size(); ++i)
      EXPECT_EQ(to_doubles(*one.beside[i]), to_doubles(*four.beside[i])) << name;
  }
}

// All zeros have no scale of their own; what they are worth is zero.
TEST(QuantiseWeight, OfZerosIsZero) {
  for (const std::string& name : weight_format_names()) {
    const StoredWeight weight = parse_stored_weight(name, "", "");
    const auto zeros = [](std::int64_t, float* row) { std::fill_n(row, K, 0.0F); };
    const QuantisedWeight q = quantise_weight(weight, 1, N, K, zeros, {});
    for (const double v : worth(weight, q, 0, 3)) EXPECT_EQ(v, 0.0) << name;
  }
}

}  // namespace
}  // namespace fuseline::executor
