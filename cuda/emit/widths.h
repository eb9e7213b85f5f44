// Widths that the emitted source and the device headers agree on.
#pragma once

#include <cstdint>

namespace fuseline::cuda {

inline constexpr std::int64_t kWarp = 32;
// Elements of 16 bits that one instruction of 16 bytes moves.
inline constexpr std::int64_t kVectorCols = 8;
// Columns that an epilogue sees at once (kernels/fragment.cuh).
inline constexpr std::int64_t kSlabCols = 64;
// Columns of one of a fragment's groups of the accumulator.
inline constexpr std::int64_t kColsOfGroup = 8;
// Threads that hide the memory's latency: about a quarter of what an H200 holds.
inline constexpr std::int64_t kBusyThreads = 65536;

}  // namespace fuseline::cuda
