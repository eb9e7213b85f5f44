// What every primitive is made of: values, operands, axes.
#pragma once

#include <cstdint>

#include "model/graph.h"

namespace fuseline {

// SSA name of a tile; value 0 is the result of a GEMM or attention mainloop.
using Value = std::int32_t;

// Columns that one fp32 partial of a row reduction covers: the tile edge of the plan.
constexpr std::int64_t partial_tile = 128;

// A vector along rows has length M; along cols, length N.
enum class Axis : std::uint8_t { rows, cols };

}  // namespace fuseline
