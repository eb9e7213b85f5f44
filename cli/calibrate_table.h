// fuseline calibrate --gemm-table.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/shared_run.h"

namespace fuseline {

// As the options were written; absent = not said.
struct TableTexts {
  std::string table;
  std::optional<std::string> gpu, iterations, output;
};

// Fits the constants of library GEMMs to two of every three rows, and says how well the third is
// predicted. InputError: --gpu is missing, a table that is none.
CommandResult calibrate_by_table(const TableTexts& texts, SharedRun& run);

}  // namespace fuseline
