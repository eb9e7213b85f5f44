// Types of 8 bits and less: what every code is worth, and the code nearest to a number.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config/dtype.h"

namespace fuseline {

class CodeTable {
 public:
  // Of e4m3, e2m1, e8m0, int8 or int4.
  explicit CodeTable(Dtype type);

  // NaN for codes that are none of numbers.
  [[nodiscard]] float value(std::uint32_t code) const { return values_[code]; }
  // The nearest code; between two that are equally near, the even one; beyond the largest number,
  // the largest. NaN becomes NaN where the type has it, and 0 elsewhere.
  [[nodiscard]] std::uint8_t code(double value) const;
  // What that code is worth.
  [[nodiscard]] double rounded(double number) const {
    return static_cast<double>(value(code(number)));
  }

 private:
  // Of a type with mantissa bits: the code without its sign.
  [[nodiscard]] std::uint64_t floating_code(double magnitude) const;

  std::vector<float> values_;      // by code
  std::vector<float> magnitudes_;  // of codes 0, 1, ... up to the largest number
  std::uint8_t sign_ = 0;          // bit of the sign; 0: a number without one
  std::uint8_t nan_ = 0;
  bool complement_ = false;  // negative codes are the complement of two
  double lowest_ = 0;        // of those
  unsigned mantissa_bits_ = 0;
  double least_normal_ = 0;  // of a type with mantissa bits
};

// The one of the type; made once.
const CodeTable& code_table(Dtype type);

}  // namespace fuseline
