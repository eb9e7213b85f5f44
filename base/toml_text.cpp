#include "base/toml_text.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string escaped(const std::string& text, bool in_lines) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n' && in_lines) {
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') {
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string toml_text(const std::string& text) { return "\"" + escaped(text, false) + "\""; }

// The first line end behind the quotes is no part of the text.
std::string toml_lines(const std::string& text) {
  return "\"\"\"\n" + escaped(text, true) + "\"\"\"";
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::string line, lines;
  for (const std::string& text : texts) {
    line += (line.empty() ? "" : ", ") + toml_text(text);
    lines += "  " + toml_text(text) + ",\n";
  }
  return line.size() < 80 ? "[" + line + "]" : "[\n" + lines + "]";
}

}  // namespace fuseline
