#include "sim/executor/float_formats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace fuseline::executor {
namespace {

// fp16's value by its definition.
double fp16_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool fp16_is_finite(std::uint16_t bits) { return (bits & 0x7c00) != 0x7c00; }

TEST(Fp16, EveryBitPatternWidensToItsValue) {
  for (std::uint32_t b = 0; b <= 0xffff; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const float value = fp16_to_float(bits);
    if (fp16_is_finite(bits)) {
      ASSERT_EQ(static_cast<double>(value), fp16_value(bits)) << b;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << b;
    } else if ((bits & 0x3ff) == 0) {
      ASSERT_TRUE(std::isinf(value)) << b;
    } else {
      ASSERT_TRUE(std::isnan(value)) << b;
    }
  }
}

TEST(Fp16, EveryValueSurvivesTheWayThereAndBack) {
  for (std::uint32_t b = 0; b <= 0xffff; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const float value = fp16_to_float(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(fp16_to_float(float_to_fp16(value)))) << b;
    } else {
      ASSERT_EQ(float_to_fp16(value), bits) << b;
    }
  }
}

// Between every two neighbours: what lies below the middle goes down, above goes up, the middle to
// the even one.
TEST(Fp16, RoundsToTheNearestNeighbourAndTiesToEven) {
  for (std::uint32_t b = 0; b < 0x7bff; ++b) {
    const auto low = static_cast<std::uint16_t>(b);
    const auto high = static_cast<std::uint16_t>(b + 1);
    const float middle = (fp16_to_float(low) + fp16_to_float(high)) / 2;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, 0.0F)), low) << b;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, 1e9F)), high) << b;
    ASSERT_EQ(float_to_fp16(middle), b % 2 == 0 ? low : high) << b;
    ASSERT_EQ(float_to_fp16(-middle), (b % 2 == 0 ? low : high) | 0x8000) << b;
  }
}

TEST(Fp16, OverflowsToInfinity) {
  EXPECT_EQ(float_to_fp16(65504.0F), 0x7bff);
  EXPECT_EQ(float_to_fp16(65519.996F), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_fp16(1e30F), 0x7c00);
  EXPECT_EQ(float_to_fp16(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(float_to_fp16(0x1p-25F), 0x0000);  // half of the smallest subnormal: to even
  EXPECT_EQ(float_to_fp16(0x1.8p-25F), 0x0001);
  EXPECT_EQ(float_to_fp16(-0.0F), 0x8000);
}

TEST(Bf16, EveryValueSurvivesTheWayThereAndBack) {
  for (std::uint32_t b = 0; b <= 0xffff; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const float value = bf16_to_float(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value)))) << b;
    } else {
      ASSERT_EQ(float_to_bf16(value), bits) << b;
    }
  }
}

TEST(Bf16, RoundsToTheNearestNeighbourAndTiesToEven) {
  for (std::uint32_t b = 0; b < 0x7f7f; ++b) {
    const std::uint32_t middle = (b << 16) | 0x8000U;
    const auto even = static_cast<std::uint16_t>(b % 2 == 0 ? b : b + 1);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(middle)), even) << b;
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(middle - 1)), b) << b;
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(middle + 1)), b + 1) << b;
  }
}

TEST(Bf16, OverflowsToInfinityAndKeepsNaN) {
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x7f7f7fffU)), 0x7f7f);
  // A NaN whose payload lies in the dropped half stays one.
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(RoundToOdd, SparesASecondRounding) {
  // Given a double just above the middle of two bf16 numbers, which a cast to fp32 puts onto it,
  const double above = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(float_to_bf16(static_cast<float>(above)), 0x3f80);  // the tie goes down
  // when rounded to odd first, then it goes up.
  EXPECT_EQ(float_to_bf16(round_to_odd(above)), 0x3f81);
  EXPECT_EQ(float_to_bf16(round_to_odd(-above)), 0xbf81);
  EXPECT_EQ(float_to_bf16(round_to_odd(1.0 + 0x1p-8 - 0x1p-40)), 0x3f80);
  EXPECT_EQ(float_to_fp16(round_to_odd(1.0 + 0x1p-11 + 0x1p-45)), 0x3c01);
}

TEST(Narrow, RowsRoundAsSingleNumbersDo) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 100.0F);
  std::vector<float> values(1000);
  for (float& v : values) v = normal(random);
  std::vector<std::byte> stored(values.size() * 4);
  std::vector<float> back(values.size());
  const auto count = static_cast<std::int64_t>(values.size());
  for (const Dtype type : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    narrow(type, values.data(), stored.data(), count);
    widen(type, stored.data(), back.data(), count);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float want = type == Dtype::bf16   ? bf16_to_float(float_to_bf16(values[i]))
                         : type == Dtype::fp16 ? fp16_to_float(float_to_fp16(values[i]))
                                               : values[i];
      ASSERT_EQ(back[i], want) << name_of(type) << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace fuseline::executor
