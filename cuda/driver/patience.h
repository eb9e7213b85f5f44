// Waiting for a GPU without a word hides a kernel that never ends.
#pragma once

#include <functional>
#include <string>

#include "base/units.h"

namespace fuseline::cuda {

// Asks until `finished`. What is waited for is said on stderr after `patience`, and again each time
// the wait has doubled.
void wait_patiently(const std::function<bool()>& finished, const std::string& doing,
                    Seconds patience = Seconds(20));

}  // namespace fuseline::cuda
