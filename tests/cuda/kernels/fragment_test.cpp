// The registers of a warp, walked through on the CPU: which (row, column) each thread holds, and
// the maps over them.
#include "cuda/kernels/fragment.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>

#include "cuda/kernels/epilogue/pair.cuh"
#include "cuda/kernels/epilogue/place.cuh"

namespace fuseline::gpu {
namespace {

template <int each, int groups>
std::set<std::pair<int, int>> covered() {
  std::set<std::pair<int, int>> places;
  for (int lane = 0; lane < 32; ++lane)
    for_each_element<Fragment<each, groups>>([&](int half, int group, int e) {
      places.insert({fragment_row(lane, half), fragment_col(each, lane, group, e)});
    });
  return places;
}

template <int each, int groups>
void expect_each_element_once() {
  const auto places = covered<each, groups>();
  EXPECT_EQ(places.size(), 16U * static_cast<unsigned>(Fragment<each, groups>::cols));
  EXPECT_EQ(places.begin()->first, 0);
  EXPECT_EQ(places.rbegin()->first, 15);
  for (const auto& [row, col] : places) {
    EXPECT_GE(col, 0);
    EXPECT_LT(col, (Fragment<each, groups>::cols));
  }
}

TEST(Fragment, AWarpHoldsEveryElementOfASlabOnce) {
  expect_each_element_once<1, 8>();
  expect_each_element_once<2, 8>();
  expect_each_element_once<4, 8>();
  expect_each_element_once<2, 4>();
  expect_each_element_once<4, 4>();
}

TEST(Fragment, RegistersAreInTheOrderOfTheTensorCore) {
  // d[4 j + 2 h + e] of mma.m16n8k16 and wgmma: row l/4 + 8 h, column 8 j + 2 (l mod 4) + e.
  Fragment<2> f{};
  for (int i = 0; i < 32; ++i) f.v[i] = static_cast<float>(i);
  for (int j = 0; j < 8; ++j)
    for (int h = 0; h < 2; ++h)
      for (int e = 0; e < 2; ++e) EXPECT_EQ(f.at(h, j, e), static_cast<float>(4 * j + 2 * h + e));
  EXPECT_EQ(fragment_col(2, 7, 3, 1), 8 * 3 + 2 * 3 + 1);
  EXPECT_EQ(fragment_row(7, 1), 9);
}

TEST(Fragment, PairsThatArePlacedInOneThreadStayThere) {
  // Column c of a narrow value belongs to columns 2 c and 2 c + 1 of the wide one, in every thread.
  for (int lane = 0; lane < 32; ++lane)
    for (int group = 0; group < 8; ++group)
      for (int e = 0; e < 2; ++e) {
        const int narrow = fragment_col(2, lane, group, e);
        EXPECT_EQ(fragment_col(4, lane, group, 2 * e), 2 * narrow);
        EXPECT_EQ(fragment_col(4, lane, group, 2 * e + 1), 2 * narrow + 1);
        EXPECT_EQ(fragment_col(2, lane, group, 0), 2 * fragment_col(1, lane, group, 0));
      }
}

TEST(Maps, VectorsAreBroadcast) {
  Fragment<2> y{};
  y.at(1, 3, 1) = 5;
  RowVector r{{2, 3}};
  ColVector<2> b{};
  b.at(0, 3, 1) = 7;
  const auto scaled = mul(y, r);
  EXPECT_EQ(scaled.at(1, 3, 1), 15);
  EXPECT_EQ(add(scaled, b).at(1, 3, 1), 22);
  EXPECT_EQ(add(scaled, b).at(0, 3, 1), 7);
  const Fragment<2> outer = mul(r, b);
  EXPECT_EQ(outer.at(1, 3, 1), 21);
  EXPECT_EQ(outer.at(0, 3, 1), 14);
}

TEST(Maps, ActivationsMatchTheirFormulas) {
  for (const float x : {-30.0F, -3.0F, -0.5F, 0.0F, 0.25F, 2.0F, 30.0F}) {
    RowVector v{{x, x}};
    EXPECT_NEAR(silu(v).v[0], x / (1 + std::exp(-x)), 1e-6F * (1 + std::abs(x)));
    const float inner = 0.7978845608F * (x + 0.044715F * x * x * x);
    EXPECT_NEAR(gelu_tanh(v).v[1], 0.5F * x * (1 + std::tanh(inner)), 1e-6F * (1 + std::abs(x)));
    // The slope against a difference quotient of the function itself.
    const double h = 1e-3;
    const auto gelu = [](double t) {
      return 0.5 * t * (1 + std::tanh(0.7978845608 * (t + 0.044715 * t * t * t)));
    };
    EXPECT_NEAR(gelu_tanh_slope(v).v[0], (gelu(x + h) - gelu(x - h)) / (2 * h), 1e-5);
  }
}

TEST(PairMaps, RopeInverseUndoesRope) {
  Fragment<2> x{};
  Fragment<2> cosine{};
  Fragment<2> sine{};
  for (int i = 0; i < 32; ++i) {
    x.v[i] = std::sin(static_cast<float>(3 * i + 1));
    // The two columns of a pair share an angle.
    const float angle = 0.1F * static_cast<float>(i / 2);
    cosine.v[i] = std::cos(angle);
    sine.v[i] = std::sin(angle);
  }
  const auto turned = rope(x, cosine, sine);
  const auto back = rope_inverse(turned, cosine, sine);
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(back.v[i], x.v[i], 1e-6F);
  EXPECT_GT(std::abs(turned.v[20] - x.v[20]), 0.05F);
}

TEST(PairMaps, SwigluBackwardIsTheGradientOfSwiglu) {
  Fragment<4> pairs{};
  Fragment<2> d{};
  for (int i = 0; i < 64; ++i) pairs.v[i] = 2 * std::sin(static_cast<float>(i + 1));
  for (int i = 0; i < 32; ++i) d.v[i] = std::cos(static_cast<float>(i));
  const auto gradient = swiglu_backward(pairs, d);
  const auto again = swiglu(pairs);
  const float h = 1e-2F;
  for (int i = 0; i < 64; ++i) {
    Fragment<4> up = pairs;
    Fragment<4> down = pairs;
    up.v[i] += h;
    down.v[i] -= h;
    // at() of the wide value: (2 g + half) · 4 + e; of the narrow one: (2 g + half) · 2 + e / 2.
    const int out = i / 4 * 2 + i % 4 / 2;
    const float slope = (swiglu(up).v[out] - swiglu(down).v[out]) / (2 * h);
    EXPECT_NEAR(gradient.pairs.v[i], d.v[out] * slope, 1e-3F);
    EXPECT_EQ(gradient.again.v[out], again.v[out]);
  }
}

// Distances between 565 tokens: a tile of 64 columns goes on to column 575, and a remainder there
// was an odd column, where loading two numbers at once is a fault.
TEST(TableColumn, OfPairsIsEvenAndInsideAlsoWhereTheTableEndsOdd) {
  for (int col = 0; col < 576; col += 2) {
    EXPECT_EQ(table_col<565>(col), col < 565 ? col : 564);
    EXPECT_EQ(table_col<128>(col), col % 128);
  }
}

TEST(SlabPlace, PartsKnowWhichColumnsAreTheirs) {
  const SlabPlace slab{0, 128, 64, 1000, 64};
  const SlabPlace part = columns(slab, 150, 20);  // columns 150 to 170 of the result
  EXPECT_EQ(part.col, -22);
  EXPECT_TRUE(meets(part));
  EXPECT_FALSE(part.whole());
  EXPECT_FALSE(meets(columns(slab, 192, 64)));
  EXPECT_FALSE(meets(columns(slab, 0, 128)));
  EXPECT_TRUE(slab.whole());
  EXPECT_EQ(slab.first_col<4>(), 256);
  EXPECT_EQ(slab.width<1>(), 500);
}

}  // namespace
}  // namespace fuseline::gpu
