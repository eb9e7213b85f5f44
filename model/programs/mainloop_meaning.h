// What mainloops compute in fp64, by their definitions (model/program.h) and without tiles.
#pragma once

#include "model/programs/meaning.h"

namespace fuseline {

// Makes value 0 and the mainloop's further results, and stores what the mainloop itself stores.
// Lines of a prologue have run. MissingError: a mainloop that states no meaning.
void run_mainloop_meaning(const Program& program, Meaning& exact);

}  // namespace fuseline
