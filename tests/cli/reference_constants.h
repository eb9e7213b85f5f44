// Defaults of the constants that are in no table of sim/gpu/calibration.cpp, for the generated
// reference.
#pragma once

#include <string>

#include "sim/gpu/gpu.h"

namespace fuseline {

// Of a GPU whose file has no fitted constants; a failure for an unknown name.
double default_of(const std::string& name, const Gpu& gpu);

}  // namespace fuseline
