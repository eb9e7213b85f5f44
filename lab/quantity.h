// Numbers with units as students write them: "12.5 MB", "3 MiB", "295 FLOP/B", "40 %".
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace fuseline::lab {

// plain: a count or another pure number, written without a unit. ratio: written with x or %.
enum class Dimension : std::uint8_t {
  bytes,
  flops,
  time,
  flop_rate,
  byte_rate,
  intensity,
  ratio,
  plain,
};

// In the base unit of its dimension: B, FLOP, s, FLOP/s, B/s, FLOP/B, 1.
struct Quantity {
  double value = 0;
  std::string unit;  // as written, one of units_of(); empty for plain numbers
};

// Why a text is no quantity of the dimension that is asked for.
struct QuantityProblem {
  std::string message;
  std::string allowed;
  std::string nearest;
};

// Commas and underscores may stand between groups of three digits. A problem: no number, a decimal
// comma, a missing unit, a unit of another dimension (which is told), bits, KB (1000 or 1024?).
std::variant<Quantity, QuantityProblem> parse_quantity(const std::string& text, Dimension wanted);

// "12.3 MB": `value` in base units, written in `unit`, one of units_of(), with so many significant
// digits; 0 digits: a whole number.
std::string quantity_text(double value, Dimension dimension, const std::string& unit, int digits);

// The spellings of a dimension's units, small ones first; empty for plain.
std::vector<std::string> units_of(Dimension dimension);

// "bytes", "time", "pure number", ...
const char* name_of(Dimension);

// Relative: half a unit in the last of so many significant digits, where that weighs most (1.00),
// and a little for rounding on the way. 0 digits: a whole number, exact.
double tolerance_of(int digits);

}  // namespace fuseline::lab
