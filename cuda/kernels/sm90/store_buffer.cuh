// Where a warp's rows lie in a buffer that its warpgroup stores tiles through.
//
// The four warps write and store without waiting for each other, and the values that follow each
// other in a buffer may have rows of 128, 64 or 32 bytes. Each warp has a quarter of the buffer for
// any of them. Were the rows of 64 bytes of all warps side by side, warp 1 would have those bytes
// whose rows of 128 warp 0 may still be storing.
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu {

constexpr int longest_stored_row = 128;  // bytes
constexpr int store_buffer_bytes = 64 * longest_stored_row;

// Of the warp whose first row among the buffer's 64 is `row`, in bytes from the buffer's begin.
FUSELINE_HD constexpr u32 rows_in_buffer(u32 row) {
  return row * static_cast<u32>(longest_stored_row);
}

}  // namespace fuseline::gpu
