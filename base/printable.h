// Text that others wrote (values, names, paths), as it may stand in a message on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fuseline {

// In one line: control characters, characters that change the direction of writing, and bytes that
// are no UTF-8 become escapes ("\n", "\x1b", "\u202e"). Of what is longer than `longest` bytes the
// beginning and the length are left: "aaa... (200000 bytes)".
std::string printable(std::string_view text, std::size_t longest);

// The same, but line breaks and tabs stay: for messages of several lines.
std::string printable_lines(std::string_view text, std::size_t longest);

}  // namespace fuseline
