// A driver without a GPU: memory is the host's, machine code is kept and never runs, and what the
// copy engine is told is written down. So the functions that get launches ready for a GPU also tell
// what must be handed over for launches elsewhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cuda/driver/driver.h"

namespace fuseline::cuda {

// Of memory there is as much as anybody wants; what is not written is not backed by pages. Nothing
// can be launched on it: InternalError.
Device recorded_device(DeviceInfo as);

// What cuTensorMapEncodeTiled was asked for.
struct RecordedMap {
  std::uint64_t address = 0;
  std::uint32_t type = 0, rank = 0, swizzle = 0, promotion = 0;
  std::array<std::uint64_t, 4> sizes{};
  std::array<std::uint64_t, 3> strides{};
  std::array<std::uint32_t, 4> box{};
};
// Of the 128 bytes that a recorded device gave as a map; nothing: they are none.
std::optional<RecordedMap> recorded_map(std::span<const std::byte> bytes);

}  // namespace fuseline::cuda
