// The memory that a plan's activations take while its block runs.
#pragma once

#include "model/plan.h"

namespace fuseline {

struct Activations {
  Bytes peak;   // the most that is alive at once: inputs, outputs and what kernels store
  Bytes saved;  // of those, from the forward pass to the backward pass
};

Activations activations_of(const Plan& plan);

}  // namespace fuseline
