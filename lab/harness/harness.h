// Between the main program of a check and the few lines that call one lab's function.
#pragma once

#include <cstdint>
#include <string>

#include "fuseline_lab.h"

namespace fuseline_lab {

// A size or constant of the case, and its matrices, by name.
std::int64_t size(const std::string& name);
double constant(const std::string& name);
Source source(const std::string& name);
Target target(const std::string& name);
// The values of a matrix, uncounted: what an accumulator is made from.
const float* values(const std::string& name);

// While one of these lives, allocations count against the chip's capacity.
class OnChip {
 public:
  OnChip();
  ~OnChip();
  OnChip(const OnChip&) = delete;
  OnChip& operator=(const OnChip&) = delete;
};

// Defined once per lab: calls the student's function on the case.
void run_case();

}  // namespace fuseline_lab
