// Kernel parameters as the device's structs lay them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "cuda/driver/driver.h"
#include "cuda/run/gpu_tensors.h"

namespace fuseline::cuda {

// Bytes between members are zero: exports find addresses by comparing the parameters of two runs,
// and what happened to lie in memory would look like one. (Clang has the builtin from version 20
// on.) By reference, since an array taken by value would be a pointer.
template <class T>
void put(std::vector<std::byte>& bytes, std::int64_t at, const T& value) {
  FUSELINE_ASSERT(
      at + static_cast<std::int64_t>(sizeof value) <= static_cast<std::int64_t>(bytes.size()),
      "parameters fit their struct");
  if constexpr (std::is_array_v<T>) {
    static_assert(std::is_arithmetic_v<std::remove_all_extents_t<T>>, "nothing lies between");
    std::memcpy(bytes.data() + at, &value, sizeof value);
  } else {
    T whole = value;
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&whole);
#endif
    std::memcpy(bytes.data() + at, &whole, sizeof whole);
  }
}

// The bytes of one struct.
template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof value);
  put(bytes, 0, value);
  return bytes;
}

TensorType tensor_type(Dtype type);

// The matrix for the bulk copy engine. InternalError: its rows do not start at multiples of 16
// bytes. `swizzle` in bytes; `l2_promotion`: bytes that L2 fetches at once.
TensorMap map_of(const Device& device, const GpuMatrix& m, int box_rows, int box_cols, int swizzle,
                 int l2_promotion = 256);

// Elements from row to row.
std::int32_t leading(const GpuMatrix& m);

}  // namespace fuseline::cuda
