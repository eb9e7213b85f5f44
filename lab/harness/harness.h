// Between the main program of a check and the few lines that call one lab's function.
#pragma once

#include <cstdint>

#include "fuseline_lab.h"

namespace fuseline_lab {

// A size or constant of the case, and its matrices, by name.
std::int64_t size(const char* name);
double constant(const char* name);
Source source(const char* name);
Target target(const char* name);

// A tile that the GEMM's mainloop has finished: asked of the checker, in registers, free.
Accumulator tile(std::int64_t first_row, std::int64_t first_col, std::int64_t rows,
                 std::int64_t cols);

// Defined once per lab: calls the student's function on the case.
void run_case();

}  // namespace fuseline_lab
