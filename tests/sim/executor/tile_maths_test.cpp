// The arithmetic of primitives against the same formulas in fp64.
#include "model/primitives/tile_maths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "model/primitives/functions.h"
#include "sim/executor/online_softmax.h"

namespace fuseline::executor {
namespace {

Matrix random_matrix(std::int64_t rows, std::int64_t cols, unsigned seed, float scale = 1.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  Matrix m;
  m.resize(rows, cols);
  for (float& v : m.data) v = normal(random);
  return m;
}

Matrix shaped(std::int64_t rows, std::int64_t cols) {
  Matrix m;
  m.resize(rows, cols);
  return m;
}

TEST(Maps, BroadcastRowsColumnsAndTables) {
  const Matrix x = random_matrix(3, 6, 1);
  const Matrix per_row = random_matrix(3, 1, 2);
  const Matrix per_col = random_matrix(1, 6, 3);
  const Matrix table = random_matrix(3, 2, 4);
  for (const Matrix* z : {&x, &per_row, &per_col, &table}) {
    Matrix out = shaped(3, 6);
    maps::sub.maths.value.apply({.a = x, .b = z, .out = out});
    for (std::int64_t r = 0; r < 3; ++r)
      for (std::int64_t c = 0; c < 6; ++c)
        EXPECT_EQ(out.row(r)[c], x.row(r)[c] - z->row(z->rows == 1 ? 0 : r)[c % z->cols]);
  }
}

TEST(Maps, AVectorAlongRowsTimesOneAlongColumnsIsATile) {
  const Matrix r = random_matrix(4, 1, 5);
  const Matrix g = random_matrix(1, 3, 6);
  Matrix out = shaped(4, 3);
  maps::mul.maths.value.apply({.a = r, .b = &g, .out = out});
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(out.row(i)[j], r.row(i)[0] * g.row(0)[j]);
}

TEST(Maps, UnaryFunctionsAreTheirFormulas) {
  const Matrix x = random_matrix(2, 50, 7, 2.0F);
  const auto check = [&](MapFn fn, auto formula) {
    Matrix out = shaped(2, 50);
    fn->maths.value.apply({.a = x, .constant = 0.25F, .out = out});
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const double want = formula(static_cast<double>(x.data[i]));
      EXPECT_NEAR(static_cast<double>(out.data[i]), want, 4e-7 * (1 + std::fabs(want)));
    }
  };
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto gelu = [](double v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  };
  check(maps::silu, [&](double v) { return v * sigmoid(v); });
  check(maps::sigmoid, sigmoid);
  check(maps::gelu_tanh, gelu);
  check(maps::gelu_tanh_slope, [&](double v) { return (gelu(v + 1e-6) - gelu(v - 1e-6)) / 2e-6; });
  check(maps::square, [](double v) { return v * v; });
  check(maps::exp, [](double v) { return std::exp(v); });
  check(maps::negate, [](double v) { return -v; });
  check(maps::reciprocal, [](double v) { return 1 / v; });
  check(maps::scale_by_constant, [](double v) { return v * 0.25; });
  check(maps::add_constant, [](double v) { return v + 0.25; });
}

TEST(Rope, TurnsPairsByTheAngleAndBack) {
  for (const std::int64_t distance : {1, 3}) {
    const Matrix x = random_matrix(2, 12, 8);
    Matrix cos = shaped(2, 6), sin = shaped(2, 6);
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t c = 0; c < 6; ++c) {
        // Both columns of a pair have one angle.
        const std::int64_t pair = distance == 1 ? c / 2 : c % 3;
        const float angle = 0.3F * static_cast<float>(pair + 4 * r);
        cos.row(r)[c] = std::cos(angle);
        sin.row(r)[c] = std::sin(angle);
      }
    }
    Matrix turned = shaped(2, 12), back = shaped(2, 12);
    pairs::rope.maths.value.apply({.pairs = x,
                                   .second = &cos,
                                   .third = &sin,
                                   .distance = distance,
                                   .group = 2 * distance,
                                   .out = turned});
    pairs::rope_inverse.maths.value.apply({.pairs = turned,
                                           .second = &cos,
                                           .third = &sin,
                                           .distance = distance,
                                           .group = 2 * distance,
                                           .out = back});
    for (std::size_t i = 0; i < x.data.size(); ++i) EXPECT_NEAR(back.data[i], x.data[i], 1e-6);
    const std::int64_t b = distance;
    EXPECT_NEAR(turned.row(1)[0], x.row(1)[0] * cos.row(1)[0] - x.row(1)[b] * sin.row(1)[0], 1e-6);
    EXPECT_NEAR(turned.row(1)[b], x.row(1)[b] * cos.row(1)[0] + x.row(1)[0] * sin.row(1)[0], 1e-6);
  }
}

TEST(Swiglu, GradientIsThatOfItsFormula) {
  const Matrix x = random_matrix(1, 8, 9);
  const Matrix d = random_matrix(1, 4, 10);
  Matrix d_pairs = shaped(1, 8), out = shaped(1, 4), forward = shaped(1, 4);
  pairs::swiglu_backward.maths.value.apply(
      {.pairs = x, .second = &d, .out = d_pairs, .again = &out});
  pairs::swiglu.maths.value.apply({.pairs = x, .out = forward});
  const auto value = [](double g, double u) { return g / (1 + std::exp(-g)) * u; };
  for (std::int64_t i = 0; i < 4; ++i) {
    const double g = x.row(0)[2 * i], u = x.row(0)[2 * i + 1], e = 1e-5;
    const double dg = (value(g + e, u) - value(g - e, u)) / (2 * e) * d.row(0)[i];
    const double du = (value(g, u + e) - value(g, u - e)) / (2 * e) * d.row(0)[i];
    EXPECT_NEAR(d_pairs.row(0)[2 * i], dg, 1e-5);
    EXPECT_NEAR(d_pairs.row(0)[2 * i + 1], du, 1e-5);
    EXPECT_NEAR(out.row(0)[i], value(g, u), 1e-6);
    EXPECT_NEAR(forward.row(0)[i], value(g, u), 1e-6);
  }
}

TEST(Reduce, AgreesWithFp64AtEveryLength) {
  const Matrix x = random_matrix(1, 300, 11);
  for (std::int64_t n = 1; n <= 300; ++n) {
    double sum = 0, squares = 0;
    float largest = x.data[0];
    for (std::int64_t i = 0; i < n; ++i) {
      const double v = x.data[static_cast<std::size_t>(i)];
      sum += v;
      squares += v * v;
      largest = std::max(largest, x.data[static_cast<std::size_t>(i)]);
    }
    EXPECT_NEAR(reductions::sum.of_numbers.value(x.data.data(), n), sum, 1e-5);
    EXPECT_NEAR(reductions::mean.of_numbers.value(x.data.data(), n), sum / static_cast<double>(n),
                1e-5);
    EXPECT_NEAR(reductions::sum_squares.of_numbers.value(x.data.data(), n), squares,
                1e-6 * (1 + squares));
    EXPECT_EQ(reductions::max.of_numbers.value(x.data.data(), n), largest);
  }
}

// Scores, V, and what each query sees of all keys.
struct Attention {
  Matrix scores = random_matrix(5, 37, 12, 3.0F);
  Matrix values = random_matrix(37, 4, 13);
  std::vector<SeenKeys> seen{{0, 1}, {0, 37}, {5, 30}, {36, 37}, {11, 13}};

  std::vector<double> expected(std::int64_t q) const {
    std::vector<double> y(4);
    double sum = 0;
    const SeenKeys s = seen[static_cast<std::size_t>(q)];
    for (std::int64_t k = s.begin; k < s.end; ++k) {
      const double p = std::exp(static_cast<double>(scores.row(q)[k]));
      sum += p;
      for (std::size_t c = 0; c < 4; ++c) y[c] += p * values.row(k)[c];
    }
    for (double& v : y) v /= sum;
    return y;
  }

  // Keys [begin, end) as one tile.
  void add(OnlineSoftmax& online, std::int64_t begin, std::int64_t end) const {
    Matrix tile = shaped(5, end - begin);
    std::vector<SeenKeys> part;
    for (std::int64_t q = 0; q < 5; ++q) {
      std::copy_n(scores.row(q) + begin, end - begin, tile.row(q));
      const SeenKeys s = seen[static_cast<std::size_t>(q)];
      part.push_back({std::max(s.begin, begin) - begin, std::min(s.end, end) - begin});
    }
    const std::vector<float> rows(values.row(begin), values.row(begin) + (end - begin) * 4);
    online.add(tile, rows, part);
  }
};

TEST(OnlineSoftmaxTiles, GiveTheSameAsAllKeysAtOnce) {
  const Attention a;
  for (const std::int64_t tile : {1, 4, 16, 37}) {
    OnlineSoftmax online;
    online.begin(5, 4);
    for (std::int64_t k = 0; k < 37; k += tile)
      a.add(online, k, std::min<std::int64_t>(37, k + tile));
    Matrix y;
    online.finish(y);
    for (std::int64_t q = 0; q < 5; ++q)
      for (std::int64_t c = 0; c < 4; ++c)
        EXPECT_NEAR(y.row(q)[c], a.expected(q)[static_cast<std::size_t>(c)], 2e-6) << tile;
  }
}

TEST(OnlineSoftmaxTiles, SplitsJoinToTheWhole) {
  const Attention a;
  OnlineSoftmax first, second, third;
  for (OnlineSoftmax* s : {&first, &second, &third}) s->begin(5, 4);
  a.add(first, 0, 10);
  a.add(second, 10, 35);
  a.add(third, 35, 37);
  first.join(second);
  first.join(third);
  Matrix y;
  first.finish(y);
  const std::vector<float> lse = first.log_sum_exp();
  for (std::int64_t q = 0; q < 5; ++q) {
    for (std::int64_t c = 0; c < 4; ++c)
      EXPECT_NEAR(y.row(q)[c], a.expected(q)[static_cast<std::size_t>(c)], 2e-6);
    double sum = 0;
    const SeenKeys s = a.seen[static_cast<std::size_t>(q)];
    for (std::int64_t k = s.begin; k < s.end; ++k) sum += std::exp(a.scores.row(q)[k]);
    EXPECT_NEAR(lse[static_cast<std::size_t>(q)], std::log(sum), 1e-5);
  }
}

}  // namespace
}  // namespace fuseline::executor
