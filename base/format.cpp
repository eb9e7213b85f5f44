#include "base/format.h"

#include <cmath>

#include <fmt/format.h>

namespace fuseline {

std::string megabytes(Bytes bytes) {
  const double mb = bytes.as_double() / 1e6;
  return fmt::format("{:.{}f}", mb, mb < 10 ? 2 : mb < 10000 ? 1 : 0);
}

std::string in_microseconds(Seconds time) {
  const double us = to_us(time);
  return fmt::format("{:.{}f}", us, us < 10 ? 2 : us < 10000 ? 1 : 0);
}

std::string in_milliseconds(Seconds time) { return fmt::format("{:.3f}", time.value() * 1e3); }

std::string signed_percent(double fraction) {
  const double rounded = std::round(fraction * 1000) / 10;
  return fmt::format("{:+.1f} %", rounded == 0 ? 0.0 : rounded);  // no "-0.0"
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::string times(double ratio) { return fmt::format("{:.2f}x", ratio); }

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) text.insert(i -= 3, ",");
  return text;
}

}  // namespace fuseline
