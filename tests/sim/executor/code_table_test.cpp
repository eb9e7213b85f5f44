// Types of 8 bits and less: every code, every middle between two, and what lies beyond.
#include "model/config/code_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sim/executor/float_formats.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {
namespace {

constexpr std::array kTypes = {Dtype::e4m3, Dtype::e2m1, Dtype::e8m0, Dtype::int8, Dtype::int4};

int codes_of(Dtype type) { return 1 << size_of(type).bits(); }

// e4m3 by its definition: S.EEEE.MMM, bias 7.
double e4m3_value(int code) {
  const int exponent = (code >> 3) & 0xf;
  const int mantissa = code & 7;
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

TEST(CodeTable, OfE4m3IsItsDefinition) {
  for (int code = 0; code < 256; ++code) {
    const float value = code_table(Dtype::e4m3).value(static_cast<std::uint32_t>(code));
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(static_cast<double>(value), e4m3_value(code)) << code;
    }
  }
}

TEST(CodeTable, OfE2m1IsTheSpecificationsTable) {
  const std::array<float, 8> values = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(code_table(Dtype::e2m1).value(code), values.at(code));
    EXPECT_EQ(code_table(Dtype::e2m1).value(code + 8), -values.at(code));
  }
}

TEST(CodeTable, OfE8m0ArePowersOfTwo) {
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(code_table(Dtype::e8m0).value(static_cast<std::uint32_t>(code)),
              std::ldexp(1.0F, code - 127));
  EXPECT_TRUE(std::isnan(code_table(Dtype::e8m0).value(255)));
}

TEST(CodeTable, EveryCodeSurvivesTheWayThereAndBack) {
  for (const Dtype type : kTypes) {
    const CodeTable& table = code_table(type);
    for (int c = 0; c < codes_of(type); ++c) {
      const auto code = static_cast<std::uint32_t>(c);
      const float value = table.value(code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(table.value(table.code(value)))) << name_of(type) << c;
      } else {
        EXPECT_EQ(table.code(static_cast<double>(value)), code) << name_of(type) << c;
      }
    }
  }
}

// Codes of neighbouring magnitudes are neighbours in all of these types.
TEST(CodeTable, RoundsToTheNearestNeighbourAndTiesToEven) {
  for (const Dtype type : kTypes) {
    const CodeTable& table = code_table(type);
    const int half = type == Dtype::e8m0 ? 256 : codes_of(type) / 2;
    for (int c = 0; c + 1 < half; ++c) {
      const auto low = static_cast<std::uint32_t>(c);
      const auto high = static_cast<std::uint32_t>(c + 1);
      const auto a = static_cast<double>(table.value(low));
      const auto b = static_cast<double>(table.value(high));
      if (std::isnan(b)) continue;
      const double middle = (a + b) / 2;
      EXPECT_EQ(table.code(std::nextafter(middle, 0.0)), low) << name_of(type) << c;
      EXPECT_EQ(table.code(std::nextafter(middle, 1e300)), high) << name_of(type) << c;
      EXPECT_EQ(table.code(middle), c % 2 == 0 ? low : high) << name_of(type) << c;
      if (type == Dtype::e8m0) continue;
      EXPECT_EQ(table.value(table.code(-middle)), -table.value(table.code(middle)))
          << name_of(type) << c;
    }
  }
}

TEST(CodeTable, SaturatesAndKeepsNanWhereThereIsOne) {
  const struct {
    Dtype type;
    float most, least;
  } limits[] = {{Dtype::e4m3, 448, -448},
                {Dtype::e2m1, 6, -6},
                {Dtype::int8, 127, -128},
                {Dtype::int4, 7, -8},
                {Dtype::e8m0, 0x1p127F, 0x1p-127F}};
  for (const auto& [type, most, least] : limits) {
    for (const double beyond : {1e300, std::numeric_limits<double>::infinity()}) {
      EXPECT_EQ(rounded_to(type, static_cast<float>(beyond)), most) << name_of(type);
      EXPECT_EQ(code_table(type).value(code_table(type).code(beyond)), most) << name_of(type);
      if (type == Dtype::e8m0) continue;
      EXPECT_EQ(code_table(type).value(code_table(type).code(-beyond)), least) << name_of(type);
    }
    const float nan = rounded_to(type, std::numeric_limits<float>::quiet_NaN());
    const bool has_nan = type == Dtype::e4m3 || type == Dtype::e8m0;
    EXPECT_EQ(std::isnan(nan), has_nan) << name_of(type);
  }
}

// Two to a byte: any part of a row reads as the row does, and neighbours stay what they were.
TEST(StorageOfHalfBytes, ReadsAnyPartOfARow) {
  std::mt19937 random(3);
  for (const Dtype type : {Dtype::int4, Dtype::e2m1}) {
    constexpr std::int64_t rows = 5, cols = 14;
    Storage storage(type, rows, cols);
    EXPECT_EQ(storage.bytes(), Bytes(rows * cols / 2));
    std::vector<std::vector<float>> want(rows, std::vector<float>(cols));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (float& v : want[static_cast<std::size_t>(r)]) v = code_table(type).value(random() % 16);
      storage.write(r, 0, cols, want[static_cast<std::size_t>(r)].data());
    }
    const std::vector<float> changed = {1, -1};
    storage.write(2, 6, 2, changed.data());
    want[2][6] = 1;
    want[2][7] = -1;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t begin = 0; begin < cols; ++begin) {
        for (std::int64_t end = begin + 1; end <= cols; ++end) {
          std::vector<float> got(static_cast<std::size_t>(end - begin));
          storage.read(r, begin, end - begin, got.data());
          for (std::int64_t c = begin; c < end; ++c)
            ASSERT_EQ(got[static_cast<std::size_t>(c - begin)],
                      want[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)])
                << r << ' ' << begin << ' ' << end;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuseline::executor
