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

// A part of one line of somebody's text, around byte `at`, with one character for each of its own:
// "?" for what may not stand on a terminal, a space for a tab.
struct MarkedLine {
  std::string text;
  std::size_t mark = 0;  // characters of `text` ahead of byte `at`
};
// `before`: bytes ahead of `at`, `most`: bytes in all, both at most.
MarkedLine marked_line(std::string_view line, std::size_t at, std::size_t before, std::size_t most);

}  // namespace fuseline
