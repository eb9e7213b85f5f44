// What the readers of JSON share: how deep a text may be, and where and how it is wrong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fuseline {

struct JsonPlace {
  int line = 1;
  int column = 1;
};
JsonPlace json_place(std::string_view text, std::size_t at);

// Before the parsing: what holds a deep value is copied and printed recursively, which overflows
// the stack. InputError: nested deeper than kDeepestJson.
void check_json_depth(std::string_view text, const std::string& file);

// The library's "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error
// <details>" as an InputError of the file. `byte` counts from 1 to the last byte read.
[[noreturn]] void throw_json_syntax(const std::string& what, std::size_t byte,
                                    std::string_view text, const std::string& file);
[[noreturn]] void throw_json_number(const std::string& file);

}  // namespace fuseline
