// What all kernels of a verified plan loaded and stored together.
#pragma once

#include "sim/executor/verification.h"

namespace fuseline::executor {

struct MovedBytes {
  Bytes loaded;
  Bytes stored;
};

// As the executor counted, and as the simulator requested.
MovedBytes counted_bytes(const VerifiedPolicy& policy);
MovedBytes predicted_bytes(const VerifiedPolicy& policy);

}  // namespace fuseline::executor
