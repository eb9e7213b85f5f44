// What the lines of a program move, with the places of the lines.
#pragma once

#include <vector>

#include "model/primitives/access.h"
#include "model/programs/program_file.h"

namespace fuseline {

// One operand that a line moves.
struct MovedByLine {
  Operand operand;
  Reach reach = Reach::tile;
  bool store = false;
  Position at{};
  ColumnPart part{};
};

// Panels that the mainloop moves among them: many tiles read them.
std::vector<MovedByLine> moved_by_lines(const Program& p, const ProgramPlaces& places);

}  // namespace fuseline
