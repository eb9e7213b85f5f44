#include "lab/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::lab {

namespace {

struct Unit {
  const char* name;
  Dimension dimension;
  double factor;
};

constexpr double kKi = 1024;

// Decimal prefixes are powers of 1000, binary ones of 1024 (IEC 80000-13).
const std::vector<Unit>& all_units() {
  using D = Dimension;
  static const std::vector<Unit> units = {
      {"B", D::bytes, 1},
      {"kB", D::bytes, 1e3},
      {"KiB", D::bytes, kKi},
      {"MB", D::bytes, 1e6},
      {"MiB", D::bytes, kKi * kKi},
      {"GB", D::bytes, 1e9},
      {"GiB", D::bytes, kKi * kKi * kKi},
      {"TB", D::bytes, 1e12},
      {"TiB", D::bytes, kKi * kKi * kKi * kKi},
      {"FLOP", D::flops, 1},
      {"MFLOP", D::flops, 1e6},
      {"GFLOP", D::flops, 1e9},
      {"TFLOP", D::flops, 1e12},
      {"ns", D::time, 1e-9},
      {"us", D::time, 1e-6},
      {"µs", D::time, 1e-6},  // micro sign
      {"μs", D::time, 1e-6},  // Greek mu
      {"ms", D::time, 1e-3},
      {"s", D::time, 1},
      {"GFLOP/s", D::flop_rate, 1e9},
      {"TFLOP/s", D::flop_rate, 1e12},
      {"PFLOP/s", D::flop_rate, 1e15},
      {"MB/s", D::byte_rate, 1e6},
      {"GB/s", D::byte_rate, 1e9},
      {"GiB/s", D::byte_rate, kKi * kKi * kKi},
      {"TB/s", D::byte_rate, 1e12},
      {"TiB/s", D::byte_rate, kKi * kKi * kKi * kKi},
      {"FLOP/B", D::intensity, 1},
      {"x", D::ratio, 1},
      {"%", D::ratio, 0.01},
  };
  return units;
}

const Unit* find_unit(const std::string& name) {
  const auto found =
      std::ranges::find_if(all_units(), [&](const Unit& u) { return u.name == name; });
  return found == all_units().end() ? nullptr : &*found;
}

std::string allowed_for(Dimension wanted) {
  if (wanted == Dimension::plain) return "a number without a unit, as in 12 or 3.14";
  return fmt::format("a number and one of {}", fmt::join(units_of(wanted), ", "));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes commas and underscores between groups of three digits. False: they stand elsewhere.
bool ungroup(std::string& number) {
  const std::size_t point = std::min(number.find_first_of(".eE"), number.size());
  std::string out;
  std::size_t group = 0;  // digits since the last separator
  bool separated = false;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const char c = number[i];
    if (c == ',' || c == '_') {
      if (i >= point || group == 0 || group > 3 || (separated && group != 3)) return false;
      separated = true;
      group = 0;
      continue;
    }
    if (i == point && separated && group != 3) return false;
    if (is_digit(c)) ++group;
    out += c;
  }
  if (point == number.size() && separated && group != 3) return false;
  number = out;
  return true;
}

// The longest beginning that can be a number.
std::size_t number_length(const std::string& text) {
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  while (i < text.size() &&
         (is_digit(text[i]) || text[i] == '.' || text[i] == ',' || text[i] == '_')) {
    ++i;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < text.size() && (text[j] == '-' || text[j] == '+')) ++j;
    if (j < text.size() && is_digit(text[j])) {
      while (j < text.size() && is_digit(text[j])) ++j;
      i = j;
    }
  }
  return i;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

QuantityProblem unknown_unit(const std::string& unit, Dimension wanted) {
  const std::string allowed = allowed_for(wanted);
  if (unit == "KB" || unit == "K" || unit == "k") {
    return {"'" + unit + "' can mean 1000 or 1024 bytes", "kB (1000 B) or KiB (1024 B)", {}};
  }
  if (unit == "b" || unit == "Mb" || unit == "Gb" || unit == "Gbit" || unit == "Mbit") {
    return {"'" + unit + "' are bits", allowed, {}};
  }
  return {"there is no unit '" + unit + "'", allowed, nearest_name(unit, units_of(wanted))};
}

}  // namespace

std::variant<Quantity, QuantityProblem> parse_quantity(const std::string& text, Dimension wanted) {
  const std::string whole = trimmed(text);
  const std::size_t length = number_length(whole);
  std::string digits = whole.substr(0, length);
  if (digits.empty())
    return QuantityProblem{"does not start with a number", allowed_for(wanted), {}};
  if (!ungroup(digits)) {
    return QuantityProblem{
        "a comma may only separate thousands", "a point before decimals, as in 12.5", {}};
  }
  if (digits.front() == '+') digits.erase(0, 1);
  double number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) {
    return QuantityProblem{"'" + digits + "' is not a number", allowed_for(wanted), {}};
  }
  const std::string unit = trimmed(whole.substr(length));
  if (wanted == Dimension::plain) {
    if (unit.empty()) return Quantity{number, {}};
    return QuantityProblem{
        "a pure number is asked for, without '" + unit + "'", allowed_for(wanted), {}};
  }
  if (unit.empty()) {
    return QuantityProblem{fmt::format("the unit is missing (asked for: {})", name_of(wanted)),
                           allowed_for(wanted),
                           {}};
  }
  const Unit* known = find_unit(unit);
  if (known == nullptr) return unknown_unit(unit, wanted);
  if (known->dimension != wanted) {
    return QuantityProblem{fmt::format("'{}' is a unit of {} (asked for: {})", unit,
                                       name_of(known->dimension), name_of(wanted)),
                           allowed_for(wanted),
                           {}};
  }
  return Quantity{number * known->factor, unit};
}

std::string quantity_text(double value, Dimension dimension, const std::string& unit, int digits) {
  double shown = value;
  if (dimension != Dimension::plain) {
    const Unit* known = find_unit(unit);
    FUSELINE_ASSERT(known != nullptr && known->dimension == dimension, unit);
    shown /= known->factor;
  }
  const int decimals =
      digits == 0 || shown == 0
          ? 0
          : std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(shown)))));
  const std::string number = fmt::format("{:.{}f}", shown, decimals);
  return unit.empty() ? number : number + " " + unit;
}

std::vector<std::string> units_of(Dimension dimension) {
  std::vector<std::string> out;
  for (const Unit& u : all_units()) {
    // The two spellings with a mu are accepted, and the plain one is shown.
    if (u.dimension == dimension && u.name[0] > 0) out.emplace_back(u.name);
  }
  return out;
}

const char* name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "bytes";
    case Dimension::flops:
      return "FLOPs";
    case Dimension::time:
      return "time";
    case Dimension::flop_rate:
      return "FLOP rate";
    case Dimension::byte_rate:
      return "bandwidth";
    case Dimension::intensity:
      return "intensity";
    case Dimension::ratio:
      return "ratio";
    case Dimension::plain:
      return "pure number";
  }
  FUSELINE_ASSERT(false, "dimension");
}

double tolerance_of(int digits) { return digits == 0 ? 1e-12 : 0.52 * std::pow(10.0, 1 - digits); }

}  // namespace fuseline::lab
