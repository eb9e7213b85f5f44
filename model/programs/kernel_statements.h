// Reads the statements of kernels: "kernel NAME: gemm, ..." with the lines below it, and a program
// alone, which is a kernel of its own.
#pragma once

#include "model/programs/file_reading.h"

namespace fuseline {

// Behind the word; `at`: where the statement begins.
void read_kernel(FileReading& file);
void read_own_program(FileReading& file, Position at);

}  // namespace fuseline
