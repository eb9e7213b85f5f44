#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

namespace fuseline {

namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
};

// The character that the text begins with; nothing when that is no UTF-8 (RFC 3629: shortest form,
// no surrogates, at most U+10FFFF).
std::optional<Character> first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return Character{first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return std::nullopt;
  std::uint32_t code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return std::nullopt;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool longer_than_needed = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (longer_than_needed || surrogate || code > 0x10FFFF) return std::nullopt;
  return Character{code, bytes};
}

// A terminal obeys it, or shows the text around it in another order.
bool is_obeyed(std::uint32_t code) {
  const auto within = [code](std::uint32_t least, std::uint32_t most) {
    return code >= least && code <= most;
  };
  return code < 0x20 || within(0x7F, 0x9F) || within(0x200B, 0x200F) || within(0x2028, 0x202E) ||
         within(0x2060, 0x206F) || code == 0xFEFF;
}

std::string escape(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

std::string printed(std::string_view text, std::size_t longest, bool keep_lines) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size() && (text.size() <= longest || at < longest)) {
    const std::string_view rest = text.substr(at);
    const auto character = first_character(rest);
    if (!character) {
      out += escape(static_cast<unsigned char>(rest.front()));
      ++at;
      continue;
    }
    const bool layout = character->code == '\n' || character->code == '\t';
    const bool kept = !is_obeyed(character->code) || (keep_lines && layout);
    out += kept ? std::string(rest.substr(0, character->bytes)) : escape(character->code);
    at += character->bytes;
  }
  if (at < text.size()) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  return printed(text, longest, false);
}

std::string printable_lines(std::string_view text, std::size_t longest) {
  return printed(text, longest, true);
}

MarkedLine marked_line(std::string_view line, std::size_t at, std::size_t before,
                       std::size_t most) {
  MarkedLine out;
  const std::size_t begin = at > before ? at - before : 0;
  for (std::size_t i = 0; i < line.size() && i < begin + most;) {
    const auto character = first_character(line.substr(i));
    const std::size_t bytes = character ? character->bytes : 1;
    if (i >= begin) {
      if (i < at) ++out.mark;
      if (!character || is_obeyed(character->code))
        out.text += line[i] == '\t' ? ' ' : '?';
      else
        out.text += line.substr(i, bytes);
    }
    i += bytes;
  }
  if (at > line.size() && line.size() >= begin) out.mark += at - line.size();
  return out;
}

}  // namespace fuseline
