// Bytes of plans as the labs count them.
#pragma once

#include <string>

#include "base/units.h"
#include "model/graph.h"
#include "model/plan.h"

namespace fuseline::lab {

// Each kernel's distinct operands once, over all kernels: what `predict --fidelity roofline` says.
Bytes plan_bytes(const Plan& plan);

// Of those kernels that hold an operator of this site ("norm1").
Bytes site_bytes(const Plan& plan, const std::string& site);
std::int64_t site_kernels(const Plan& plan, const std::string& site);

}  // namespace fuseline::lab
