// How deep the values of a TOML text may lie within each other.
#pragma once

#include <string>
#include <string_view>

namespace fuseline {

// Before the parsing: the parser and everything after it visit nested values recursively, which
// overflows the stack. Brackets within each other make depth, and so do dots in one key: [a.b.c],
// and x = { a.b.c = [ ... ] }. InputError (line) beyond 32 brackets or 16 dots; our own files have
// 3 of each.
void check_toml_nesting(std::string_view text, const std::string& file);

}  // namespace fuseline
