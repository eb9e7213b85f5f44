// A sweep as CSV, line by line: on one process or on several, and so that what is finished is kept.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "sim/selection/grid.h"

namespace fuseline {

struct SweepLines {
  std::optional<std::string> output;  // a file; empty: standard output
  bool resume = false;
  std::string asked;  // all that decides the lines: the same text when the sweep goes on
};

// The lines of all cells in order: the same to the byte for any number of threads and ranks. While
// it works, a journal beside the output keeps the finished cells; at the end the output appears
// whole and the journal goes. InputError: as a cell's, or a journal that cannot be used.
CommandResult sweep_lines(const SweepGrid& grid, const SweepLines& how);

}  // namespace fuseline
