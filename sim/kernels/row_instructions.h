// Instructions of our own row kernels (cuda/kernels/stream), counted from their programs.
#pragma once

#include <cstdint>

#include "model/program.h"

namespace fuseline {

// Whether nothing of a row leaves but its sums.
bool leaves_only_sums(const Program& program);

// What a thread issues for an element of a row that stays in its registers. `cols`: of the row.
// Loads and stores have guards and addresses, each thread of a row has a start and joins its sums
// with its neighbours', and a product whose one use is a sum is one instruction with that sum.
double row_instructions(const Program& program, std::int64_t rows, std::int64_t cols);

}  // namespace fuseline
