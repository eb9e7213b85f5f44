// Modulation as a framework computes it: one and the scale, times the normalised rows, plus the
// shift; the gate times the branch, plus the stream. Each is a kernel.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite decompose_modulation();

}  // namespace fuseline
