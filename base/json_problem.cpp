#include "base/json_problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_text.h"

namespace fuseline {
namespace {

// The details end with the last token, however long.
std::string syntax_details(std::string details) {
  constexpr std::size_t longest = 160;
  for (const std::string_view start : {": ", "syntax error "}) {
    if (const std::size_t at = details.find(start); at != std::string::npos) {
      details.erase(0, at + start.size());
    }
  }
  return details.size() > longest ? details.substr(0, longest) + "..." : details;
}

}  // namespace

JsonPlace json_place(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 = 0
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(at - line_start) + 1};
}

void check_json_depth(std::string_view text, const std::string& file) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth <= kDeepestJson) continue;
      const JsonPlace place = json_place(text, i);
      throw InputError({.file = file,
                        .message = "JSON is nested too deeply",
                        .allowed = fmt::format("at most {} levels", kDeepestJson),
                        .line = place.line,
                        .column = place.column});
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

void throw_json_syntax(const std::string& what, std::size_t byte, std::string_view text,
                       const std::string& file) {
  const JsonPlace place = json_place(text, std::min(text.size(), byte == 0 ? 0 : byte - 1));
  throw InputError({.file = file,
                    .message = "JSON syntax error: " + syntax_details(what),
                    .line = place.line,
                    .column = place.column});
}

void throw_json_number(const std::string& file) {
  throw InputError({.file = file,
                    .message = "a number in the file is too large",
                    .allowed = "numbers below 1.8e308"});
}

}  // namespace fuseline
