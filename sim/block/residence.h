// Where the simulator finds a plan's tensors: on chip, in L2, or in HBM.
#pragma once

#include <string>
#include <vector>

#include "model/explain.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Completes the homes of an explanation: a tensor of which at least 99 % of the bytes that tiles
// load are found in L2 has the home "L2"; "HBM, 40 % of loads hit L2" when a part. Unread tensors
// and those that never leave the chip keep their homes. `estimate`: of the explained plan, at
// hierarchy fidelity.
void add_residence(Explanation& explanation, const Plan& plan, const PlanEstimate& estimate);

// What L2 holds of one tensor when a launch is over.
struct ResidentBytes {
  std::string launch;
  Bytes bytes;  // zero before the tensor is made and after its last use: its memory is reused
  bool alive = false;  // made, and still to be used, or used by this launch
};

// By launch, in order; hierarchy fidelity. `tensor`: of the plan's graph. The launches are those of
// simulate() with the same options.
std::vector<ResidentBytes> residence_over_time(const Plan& plan, const Gpu& gpu, TensorId tensor,
                                               const SimulationOptions& options = {});

}  // namespace fuseline
