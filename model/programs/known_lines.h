// The lines that all primitives have, by which the reader of programs finds the one that a line is.
#pragma once

#include <string>
#include <vector>

#include "model/primitives/primitive.h"
#include "model/programs/syntax.h"

namespace fuseline {

struct LineForm {
  std::size_t kind = 0;  // index into known_kinds()
  std::string keyword;   // of a line that stores: "store"; empty: the line makes values
  std::string word;      // behind "=": "load"; empty: a value, or a pattern
  std::string pattern;   // "{} + {}"
  Primitive filled;
};

// In the order of their names: the project's own, then those that were added.
const std::vector<LineForm>& known_lines();
const std::vector<LineKind>& known_kinds();
// The primitive's kind, or null: it added no lines, and cannot be written.
const LineKind* kind_of(const Primitive& primitive);

}  // namespace fuseline
