// Where the rows of a product's operands begin in memory, and what that costs.
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline {

// Whether the library must take a kernel that fetches element by element. It must where the length
// of an operand's rows, or of the result's, is no multiple of the alignment, because then bulk
// copies and vector loads cannot be used. A single row is contiguous. Batched GEMMs and those of
// attention have numbers of tokens as sizes; they count as padded.
bool fetches_by_elements(const GemmProblem& problem, const Gpu& gpu);

// Of the rows that a bulk copy takes 128 bytes from, the share that lies in two lines of L2.
double rows_between_lines(const GemmProblem& problem, const GemmOperand& operand);

// Of the 128 bytes that a bulk copy takes from each row, the share that lies in a second line of
// L2: of rows that do not all begin at a line, seven of eight lie in two where their length is an
// odd multiple of 16 bytes. Mean over what a tile of our own mainloop loads; 0 for others.
double crossing_rows(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

}  // namespace fuseline
