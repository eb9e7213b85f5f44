// A file of programs for one GPU: every mistake that the language's rules and the GPU's tiles find.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/programs/program_file.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// The largest number that may take the place of a letter's.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 32;

// In the order of their lines. A GPU's tiles are asked only where all rules of the language hold.
std::vector<Diagnosis> mistakes_on(const ProgramFile& file, const Gpu& gpu);

// The file with other numbers for the letters of its lines "size".
// InputError of `field`: a letter that no such line has.
ProgramFile with_sizes(const ProgramFile& file, const std::map<std::string, std::int64_t>& sizes,
                       const InputProblem& field);

}  // namespace fuseline
