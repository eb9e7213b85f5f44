// A framework's norm takes dense rows, so it copies the slices of Q and K first.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite copy_slices();

}  // namespace fuseline
