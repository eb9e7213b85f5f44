#include "lab/printable.h"

#include <cstdint>

namespace fuseline::lab {

namespace {

bool continues(unsigned char c) { return (c & 0xc0U) == 0x80U; }

// Bytes of the well-formed character at `at` (Unicode 15, table 3-7); 0: there is none.
std::size_t length_at(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : std::uint8_t{0};
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const unsigned char second = byte(1);
  if (first >= 0xc2 && first <= 0xdf) return continues(second) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool in_range = !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second > 0x9f);
    return continues(second) && in_range && continues(byte(2)) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool in_range = !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second > 0x8f);
    return continues(second) && in_range && continues(byte(2)) && continues(byte(3)) ? 4 : 0;
  }
  return 0;
}

// C0, delete, and C1 (U+0080 to U+009F).
bool is_control(const std::string& text, std::size_t at, std::size_t length) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (length == 1) return (first < 0x20 && first != '\n') || first == 0x7f;
  return length == 2 && first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

}  // namespace

std::string printable(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_at(text, at);
    if (length == 0) {
      out += '?';
      ++at;
      continue;
    }
    if (is_control(text, at, length)) {
      out += ' ';
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  return out;
}

}  // namespace fuseline::lab
