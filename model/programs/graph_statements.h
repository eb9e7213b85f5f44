// Reads the statements of tensors and operators: "input x[M,K]", "op norm = rms_norm(...) ->
// (...)", "relate", "forward" and "preparation".
#pragma once

#include <optional>
#include <string>

#include "model/programs/file_reading.h"

namespace fuseline {

// Whether a statement of the plan's own graph begins with the word. It is read then.
bool read_graph_statement(FileReading& file, const std::string& word);
// "block" and "preparation", behind the word: statements of a graph of their own, indented.
void read_block(FileReading& file);
void read_preparation(FileReading& file);

}  // namespace fuseline
