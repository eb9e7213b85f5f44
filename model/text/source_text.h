// A text that a person wrote in one of our languages, and places in it.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace fuseline {

// A place in a text: line and column, both 1-based; columns count bytes.
struct Position {
  int line = 0;
  int column = 0;
};

struct SourceText {
  std::string file;  // for messages
  std::string text;

  [[nodiscard]] std::string line(int number) const;
  // InputError at that place. File, line, column and the line itself are filled in.
  [[noreturn]] void fail(Position at, InputProblem problem) const;
};

}  // namespace fuseline
