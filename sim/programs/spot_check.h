// Programs that are too large for fp64 as a whole: each on its own, on some of its rows.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/programs/check_results.h"

namespace fuseline {

// Each program with what the machine has stored before it as its given tensors, on rows that depend
// on the seed; the first and the last row are among them. Where a program sums down columns they
// are whole blocks of rows. Every program of a chain is then right where it was looked at, with
// tolerances of its own roundings alone. Says in `why_not` which program cannot be looked at in
// this way: a tensor that several programs store in the same place, rows that need other rows,
// or blocks of rows that are too large for fp64.
CheckedResults spot_check(const Plan& plan, const executor::Inputs& inputs,
                          const std::function<const executor::Storage&(TensorId)>& stored,
                          std::uint64_t seed, int threads);

}  // namespace fuseline
