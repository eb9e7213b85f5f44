#include "lab/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fuseline::lab {
namespace {

using ::testing::HasSubstr;

double value_of(const std::string& text, Dimension wanted) {
  const auto parsed = parse_quantity(text, wanted);
  const auto* q = std::get_if<Quantity>(&parsed);
  EXPECT_NE(q, nullptr) << text;
  return q == nullptr ? -1 : q->value;
}

std::string quantity_problem(const std::string& text, Dimension wanted) {
  const auto parsed = parse_quantity(text, wanted);
  const auto* p = std::get_if<QuantityProblem>(&parsed);
  return p == nullptr ? "accepted" : p->message + " | " + p->allowed + " | " + p->nearest;
}

TEST(Quantity, TellsDecimalFromBinaryPrefixes) {
  EXPECT_EQ(value_of("12.5 MB", Dimension::bytes), 12.5e6);
  EXPECT_EQ(value_of("3 MiB", Dimension::bytes), 3.0 * 1024 * 1024);
  EXPECT_EQ(value_of("2 kB", Dimension::bytes), 2000);
  EXPECT_EQ(value_of("2 KiB", Dimension::bytes), 2048);
  EXPECT_EQ(value_of("1 GiB", Dimension::bytes), 1073741824);
  EXPECT_EQ(value_of("7B", Dimension::bytes), 7);
}

TEST(Quantity, ReadsTheUnitsOfEveryDimension) {
  EXPECT_DOUBLE_EQ(value_of("1.2 us", Dimension::time), 1.2e-6);
  EXPECT_DOUBLE_EQ(value_of("1.2 µs", Dimension::time), 1.2e-6);
  EXPECT_DOUBLE_EQ(value_of("1.2 μs", Dimension::time), 1.2e-6);
  EXPECT_DOUBLE_EQ(value_of("3 ms", Dimension::time), 3e-3);
  EXPECT_DOUBLE_EQ(value_of("989 TFLOP/s", Dimension::flop_rate), 989e12);
  EXPECT_DOUBLE_EQ(value_of("295 FLOP/B", Dimension::intensity), 295);
  EXPECT_DOUBLE_EQ(value_of("3.35 TB/s", Dimension::byte_rate), 3.35e12);
  EXPECT_DOUBLE_EQ(value_of("9.5 x", Dimension::ratio), 9.5);
  EXPECT_DOUBLE_EQ(value_of("9.5x", Dimension::ratio), 9.5);
  EXPECT_DOUBLE_EQ(value_of("40 %", Dimension::ratio), 0.4);
  EXPECT_DOUBLE_EQ(value_of("-32.3 %", Dimension::ratio), -0.323);
  EXPECT_DOUBLE_EQ(value_of("2.5e3 GFLOP", Dimension::flops), 2.5e12);
  EXPECT_DOUBLE_EQ(value_of("42", Dimension::plain), 42);
}

TEST(Quantity, TakesCommasBetweenThousandsOnly) {
  EXPECT_EQ(value_of("12,288", Dimension::plain), 12288);
  EXPECT_EQ(value_of("1,234,567.5 B", Dimension::bytes), 1234567.5);
  EXPECT_EQ(value_of("1_000 B", Dimension::bytes), 1000);
  for (const char* text : {"12,5 MB", "1,23,456 B", ",5 B", "1234,567 B", "1.2,345 B"}) {
    EXPECT_THAT(quantity_problem(text, Dimension::bytes), HasSubstr("thousands")) << text;
  }
}

TEST(Quantity, TellsAMissingUnit) {
  EXPECT_THAT(quantity_problem("12.5", Dimension::bytes), HasSubstr("unit is missing"));
  EXPECT_THAT(quantity_problem("9.5", Dimension::ratio), HasSubstr("unit is missing"));
}

TEST(Quantity, TellsAUnitOfAnotherDimension) {
  EXPECT_THAT(quantity_problem("3 ms", Dimension::bytes), HasSubstr("'ms' is a unit of time"));
  EXPECT_THAT(quantity_problem("3 GB/s", Dimension::bytes), HasSubstr("unit of bandwidth"));
  EXPECT_THAT(quantity_problem("3 MB", Dimension::plain), HasSubstr("without 'MB'"));
}

TEST(Quantity, RefusesWhatCanMeanTwoThings) {
  EXPECT_THAT(quantity_problem("3 KB", Dimension::bytes), HasSubstr("1000 or 1024"));
  EXPECT_THAT(quantity_problem("3 Mb", Dimension::bytes), HasSubstr("bits"));
  EXPECT_THAT(quantity_problem("3 Mib", Dimension::bytes), HasSubstr("MiB"));
}

TEST(Quantity, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "MB", "about 3 MB", "nan MB", "inf B", "1e999 B", "- B", "1.2.3 B",
                           "0x10 B", "3 MB or so"}) {
    EXPECT_NE(quantity_problem(text, Dimension::bytes), "accepted") << text;
  }
}

TEST(Quantity, PrintsAsManyDigitsAsAskedFor) {
  EXPECT_EQ(quantity_text(12.3456e6, Dimension::bytes, "MB", 3), "12.3 MB");
  EXPECT_EQ(quantity_text(0.0123456, Dimension::ratio, "%", 3), "1.23 %");
  EXPECT_EQ(quantity_text(1234.5, Dimension::plain, "", 0), "1234");
  EXPECT_EQ(quantity_text(-0.32345, Dimension::ratio, "%", 3), "-32.3 %");
}

// What quantity_text() prints is right when it is read again.
TEST(Quantity, ItsToleranceIsHalfAUnitInTheLastDigit) {
  for (double v = 1.0; v < 10; v *= 1.0137) {
    for (const int digits : {2, 3, 4}) {
      const double read =
          value_of(quantity_text(v, Dimension::bytes, "B", digits), Dimension::bytes);
      EXPECT_LE(std::abs(read - v), tolerance_of(digits) * v) << v << " " << digits;
    }
  }
  EXPECT_GT(std::abs(1.01 - 1.0), tolerance_of(3));
}

}  // namespace
}  // namespace fuseline::lab
