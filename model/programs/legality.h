// Whether the programs of a file are legal, each by itself and all as a plan, with the line of
// every mistake.
#pragma once

#include <vector>

#include "model/programs/program_file.h"

namespace fuseline {

// In the order of their lines, those of reading among them. Programs that could not be read are not
// checked. What a GPU's tiles and memory hold is asked by sim/programs/tile_check.h.
std::vector<Diagnosis> check_programs(const ProgramFile& file);

// One at that place of the file.
Diagnosis diagnosis_at(const ProgramFile& file, Position at, const std::string& rule,
                       const std::string& message, const std::string& allowed = {},
                       const std::string& mend = {});
// The line of a primitive, or of the mainloop (-1).
Position place_of(const ProgramPlaces& places, bool in_prologue, int primitive);
void sort_by_line(std::vector<Diagnosis>& diagnoses);

}  // namespace fuseline
