// How wide bands are on GPUs that nobody measured, and how many such machines say so.
#pragma once

#include <string>
#include <vector>

#include "sim/judge/next_machine.h"
#include "sim/sure/band.h"

namespace fuseline {

// A table: each machine's rows by bands that the other machines widen.
std::string left_out_machines_text(const std::vector<LeftOutMachine>& machines);

// A table: how wide the bands of each subject and phase are there. Empty where none has a widening
// in all phases.
std::string widenings_text(const std::vector<Widening>& widenings);

}  // namespace fuseline
