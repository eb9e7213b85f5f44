#include "model/config/code_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.h"

namespace fuseline {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Of a type with so many bits of mantissa and this bias; exponent 0 holds subnormals.
float floating(int magnitude, int mantissa_bits, int bias) {
  const int exponent = magnitude >> mantissa_bits;
  const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  return std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                    exponent - bias - mantissa_bits);
}

// OCP 8-bit Floating Point Specification 1.0: e4m3 has no infinities, and S.1111.111 is NaN. OCP
// Microscaling Formats 1.0: e2m1 has neither; e8m0 is 2^(code - 127), and 255 is NaN.
float worth(Dtype type, int code) {
  const int bits = static_cast<int>(size_of(type).bits());
  const int half = 1 << (bits - 1);
  const float sign = code >= half ? -1.0F : 1.0F;
  switch (type) {
    case Dtype::e4m3:
      return code % half == half - 1 ? kNan : sign * floating(code % half, 3, 7);
    case Dtype::e2m1:
      return sign * floating(code % half, 1, 1);
    case Dtype::e8m0:
      return code == 255 ? kNan : std::ldexp(1.0F, code - 127);
    default:
      return static_cast<float>(code >= half ? code - 2 * half : code);
  }
}

}  // namespace

CodeTable::CodeTable(Dtype type) {
  const int bits = static_cast<int>(size_of(type).bits());
  FUSELINE_ASSERT(bits <= 8, "a type with more codes");
  for (int code = 0; code < 1 << bits; ++code) values_.push_back(worth(type, code));
  complement_ = type == Dtype::int8 || type == Dtype::int4;
  const bool has_sign = type != Dtype::e8m0;
  if (has_sign) sign_ = static_cast<std::uint8_t>(1U << (bits - 1));
  const std::size_t magnitudes = has_sign ? values_.size() / 2 : values_.size();
  std::copy_if(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(magnitudes),
               std::back_inserter(magnitudes_), [](float v) { return !std::isnan(v); });
  if (magnitudes_.size() < magnitudes) nan_ = static_cast<std::uint8_t>(magnitudes - 1);
  if (type == Dtype::e4m3) mantissa_bits_ = 3;
  if (type == Dtype::e2m1) mantissa_bits_ = 1;
  if (mantissa_bits_ > 0) least_normal_ = magnitudes_[std::size_t{1} << mantissa_bits_];
  lowest_ = complement_ ? static_cast<double>(values_[magnitudes]) : -magnitudes_.back();
}

std::uint8_t CodeTable::code(double value) const {
  if (std::isnan(value)) return nan_;
  if (complement_) {
    // The last place of a number of this size is 1: the addition rounds, ties to even, and leaves
    // the integer's complement of two in the lowest bits.
    const double sum =
        std::clamp(value, lowest_, static_cast<double>(magnitudes_.back())) + 0x1.8p52;
    return static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(sum) & (2U * sign_ - 1U));
  }
  if (mantissa_bits_ > 0)
    return static_cast<std::uint8_t>((std::signbit(value) ? sign_ : 0U) |
                                     floating_code(std::fabs(value)));
  const double magnitude = std::fabs(value);
  const auto above = std::lower_bound(magnitudes_.begin(), magnitudes_.end(), magnitude);
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? sign_ : 0);
  if (above == magnitudes_.end()) return static_cast<std::uint8_t>(sign | (magnitudes_.size() - 1));
  auto code = static_cast<std::size_t>(above - magnitudes_.begin());
  // A power of two that lies halfway takes the even exponent, as a mantissa would.
  if (code > 0) {
    const double down = magnitude - static_cast<double>(magnitudes_[code - 1]);
    const double up = static_cast<double>(magnitudes_[code]) - magnitude;
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return static_cast<std::uint8_t>(sign | code);
}

std::uint64_t CodeTable::floating_code(double magnitude) const {
  // Numbers of fp64 with fewer bits of mantissa: codes that follow each other, as those of fp64 do.
  const unsigned dropped = 52U - mantissa_bits_;
  const std::uint64_t largest = magnitudes_.size() - 1;
  const std::uint64_t first = std::bit_cast<std::uint64_t>(least_normal_) >> dropped;
  if (magnitude < least_normal_) {
    // The last place of this number is the distance of subnormals: the addition rounds.
    const double places = least_normal_ * static_cast<double>(std::uint64_t{1} << dropped);
    return std::bit_cast<std::uint64_t>(magnitude + places) - std::bit_cast<std::uint64_t>(places);
  }
  const auto bits = std::bit_cast<std::uint64_t>(magnitude);
  // Half of the last kept place is added, less one where the kept part is even: ties go to even.
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rounded = (bits + half - 1 + ((bits >> dropped) & 1U)) >> dropped;
  return std::min(largest, rounded - first + (std::uint64_t{1} << mantissa_bits_));
}

const CodeTable& code_table(Dtype type) {
  static const std::array tables = {CodeTable(Dtype::e4m3), CodeTable(Dtype::int8),
                                    CodeTable(Dtype::int4), CodeTable(Dtype::e2m1),
                                    CodeTable(Dtype::e8m0)};
  const auto index = static_cast<std::size_t>(type) - static_cast<std::size_t>(Dtype::e4m3);
  FUSELINE_ASSERT(index < tables.size(), "a type of more than 8 bits");
  return tables[index];
}

}  // namespace fuseline
