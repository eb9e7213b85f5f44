#include "gui/model/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/format.h"

namespace fuseline::gui {

namespace {

// Three significant places with the prefix that leaves one to three digits before the point.
std::string scaled(double value, const char* unit) {
  static constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  double shown = std::abs(value);
  while (shown >= 999.95 && prefix + 1 < kPrefixes.size()) {
    shown /= 1000;
    ++prefix;
  }
  const int places = prefix == 0 ? 0 : shown < 10 ? 2 : shown < 100 ? 1 : shown < 1000 ? 1 : 0;
  return fmt::format("{}{:.{}f} {}{}", value < 0 ? "−" : "", shown, places, kPrefixes[prefix],
                     unit);
}

std::string rate(double value, const char* unit) {
  static constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.{}f} {}{}", value,
                     value < 10    ? 2
                     : value < 100 ? 1
                                   : 0,
                     kPrefixes[prefix], unit);
}

// No sign where all figures are zero: "−0.0 %" would say that there is a difference.
std::string with_sign(bool negative, const std::string& magnitude) {
  const std::size_t figures = magnitude.find_first_not_of("0.");
  const bool zero = figures > 0 && (figures == std::string::npos || magnitude[figures] == ' ');
  return zero ? magnitude : (negative ? "−" : "+") + magnitude;
}

}  // namespace

std::string short_bytes(Bytes bytes) { return scaled(bytes.as_double(), "B"); }

std::string exact_bytes(Bytes bytes) {
  return grouped(bytes.value()) + (bytes.value() == 1 ? " byte" : " bytes");
}

std::string short_time(Seconds time) {
  const double us = to_us(time);
  if (us >= 10000) return fmt::format("{:.2f} ms", us / 1000);
  return in_microseconds(time) + " µs";
}

std::string short_flops(Flops flops) { return scaled(flops.as_double(), "FLOP"); }
std::string exact_flops(Flops flops) { return grouped(flops.value()) + " FLOP"; }
std::string short_rate(BytesPerSecond r) { return rate(r.value(), "B/s"); }
std::string short_rate(FlopsPerSecond r) { return rate(r.value(), "FLOP/s"); }

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string signed_bytes(Bytes bytes) {
  if (bytes == Bytes(0)) return "0 B";
  const bool negative = bytes < Bytes(0);
  return with_sign(negative, short_bytes(negative ? Bytes(0) - bytes : bytes));
}

std::string signed_time(Seconds time) {
  const bool negative = time.value() < 0;
  return with_sign(negative, short_time(negative ? -1.0 * time : time));
}

std::string signed_percent_text(double fraction) {
  return with_sign(fraction < 0, fmt::format("{:.1f} %", std::abs(fraction) * 100));
}

std::string speed_text(double ratio) {
  if (std::abs(ratio - 1) < 0.01) return "as fast";
  return ratio > 1 ? fmt::format("{:.2f}× faster", ratio)
                   : fmt::format("{:.2f}× slower", 1 / ratio);
}

std::string layers_text(const LayersEstimate& layers, const Workload& workload) {
  const double rate = layers.tokens_per_second(workload);
  return fmt::format("{}{} layers: {}, {} tokens/s", layers.entry ? "the whole model, " : "",
                     layers.layers, short_time(layers.time),
                     rate < 100 ? fmt::format("{:.1f}", rate) : grouped(std::llround(rate)));
}

}  // namespace fuseline::gui
