// Reads names and operands: "h[M, 0:64]" is columns 0 to 63 of all rows of h.
#pragma once

#include <string>

#include "model/graph.h"
#include "model/programs/sizes.h"
#include "model/text/token_cursor.h"

namespace fuseline {

bool at_operand(const TokenCursor& cursor);  // a name, then "["
// InputError at its place: no such tensor (with the nearest name), rows or columns that it does not
// have.
Operand read_operand(TokenCursor& cursor, const Graph& graph, const Sizes& sizes);
std::string read_any_name(TokenCursor& cursor, const char* what);  // in quotes or not

}  // namespace fuseline
