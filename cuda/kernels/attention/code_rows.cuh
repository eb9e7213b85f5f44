// Keys and values in codes on their way to the tensor cores: rows of codes come to shared memory as
// they are, and become rows of numbers there.
#pragma once

#include "../byte_types.cuh"
#include "mma_tiles.cuh"

namespace fuseline::gpu {

// Rows [first, first + count) of codes of one head by the threads of a warp, without a gap; rows
// outside [0, rows) become zeros.
template <int d, int count, class Stored>
FUSELINE_DEVICE void fetch_codes(u32 to, const HeadRows<Stored>& from, int first, int rows) {
  constexpr int chunks = d / 16;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x % 32); i < count * chunks; i += 32) {
    const int r = first + i / chunks;
    const bool exists = r >= 0 && r < rows;
    cp_async_16(to + 16 * i, from.data + (exists ? r * from.ld : 0) + 16 * (i % chunks),
                exists ? 16 : 0);
  }
}

// The same rows as numbers, in mma_tiles.cuh's places.
template <class Element, class Stored, int d, int count>
FUSELINE_DEVICE void numbers_of_codes(u32 to, u32 from) {
  constexpr int chunks = d / 16;
  constexpr Codes codes = codes_of_type<Stored>;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x % 32); i < count * chunks; i += 32) {
    const uint4 x = load_shared_16(from + 16 * i);
    const u32 at = to + i / chunks * row_pitch<d> + i % chunks * 32;
    const auto eight = [](u32 low, u32 high) {
      return make_uint4(as_element<Element>(code_pair<codes, 0>(low, high)),
                        as_element<Element>(code_pair<codes, 1>(low, high)),
                        as_element<Element>(code_pair<codes, 2>(low, high)),
                        as_element<Element>(code_pair<codes, 3>(low, high)));
    };
    store_shared_16(at, eight(x.x, x.y));
    store_shared_16(at + 16, eight(x.z, x.w));
  }
}

}  // namespace fuseline::gpu
