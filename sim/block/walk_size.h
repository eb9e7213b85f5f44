// How far the hierarchy model must walk through a plan's kernels, known before it does.
#pragma once

#include <string>

#include "model/plan.h"

namespace fuseline {

// Time and memory of a simulation go with these two.
struct WalkSize {
  double tiles = 0;   // of all GEMMs, 128 × 128; each is kept in memory
  double chunks = 0;  // of the L2 (64 × 64 elements), each tensor once per kernel that touches it

  [[nodiscard]] bool fits() const;
};

WalkSize walk_size(const Plan& plan);

// "11 million GEMM tiles and 940 million cache chunks"
std::string describe(const WalkSize& size);

// InputError when simulating the plan would take more than about a minute or half a gigabyte.
void check_walk_size(const Plan& plan);

}  // namespace fuseline
