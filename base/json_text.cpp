#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace fuseline {

namespace {

using nlohmann::json;

struct Place {
  int line = 1;
  int column = 1;
};

Place place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 = 0
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(at - line_start) + 1};
}

// Before the parsing: what holds a deep value is copied and printed recursively, which overflows
// the stack.
void check_depth(std::string_view text, const std::string& file) {
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
      const Place place = place_of(text, i);
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

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error <details>", and
// the details end with the last token, however long.
std::string details_of(const json::parse_error& error) {
  constexpr std::size_t longest = 160;
  std::string details = error.what();
  for (const std::string_view start : {": ", "syntax error "}) {
    if (const std::size_t at = details.find(start); at != std::string::npos) {
      details.erase(0, at + start.size());
    }
  }
  return details.size() > longest ? details.substr(0, longest) + "..." : details;
}

}  // namespace

json parse_json(const std::string& text, const std::string& file) {
  check_depth(text, file);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    // error.byte counts from 1 to the last byte read.
    const Place place = place_of(text, std::min(text.size(), error.byte == 0 ? 0 : error.byte - 1));
    throw InputError({.file = file,
                      .message = "JSON syntax error: " + details_of(error),
                      .line = place.line,
                      .column = place.column});
  } catch (const json::exception&) {
    // Only a number can be wrong in a well-formed text.
    throw InputError({.file = file,
                      .message = "a number in the file is too large",
                      .allowed = "numbers below 1.8e308"});
  }
}

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fuseline
