// Values in and out of shared memory: a box is a number of rows of 32, 64 or 128 bytes, swizzled.
// Both mainloops use these; they differ in how a box comes from and goes to global memory.
#pragma once

#include "../byte_types.cuh"
#include "../fragment.cuh"
#include "../ptx/matrix.cuh"
#include "../swizzle.cuh"

namespace fuseline::gpu {

constexpr int box_row_bytes = 128;

// Row (lane mod 16), chunk (group + lane / 16): the address that lane gives to ldmatrix and
// stmatrix for two groups of a fragment, the first even; words 0 to 3 are (half 0, group), (half 1,
// group), (half 0, group + 1), (half 1, group + 1).
template <int row_bytes>
FUSELINE_DEVICE u32 fragment_address(u32 box, u32 first_row, u32 group) {
  const u32 lane = threadIdx.x % 32;
  return box + swizzle<row_bytes>(first_row + lane % 16, group + lane / 16);
}

// Reads groups first_group onward of a warp's 16 rows from boxes of 64 columns, box_bytes apart.
template <class T, int each, int groups>
FUSELINE_DEVICE Fragment<each, groups> read_box(u32 box, u32 box_bytes, u32 first_row,
                                                int first_group) {
  Fragment<each, groups> out;
  if constexpr (each == 2) {
#pragma unroll
    for (int g = 0; g < groups; g += 2) {
      u32 words[4];
      ldmatrix_x4(words, fragment_address<box_row_bytes>(box, first_row, first_group + g));
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const FloatPair pair = unpack<T>(words[w]);
        out.at(w % 2, g + w / 2, 0) = pair.low;
        out.at(w % 2, g + w / 2, 1) = pair.high;
      }
    }
  } else {  // four neighbouring columns a thread: 8 bytes, two boxes
    const u32 lane = threadIdx.x % 32;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const int place = first_group + g;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u32 row = first_row + static_cast<u32>(fragment_row(static_cast<int>(lane), half));
        u32 low, high;
        load_shared(low, high,
                    box + place / 4 * box_bytes +
                        swizzle<128>(row, 2 * (place % 4) + lane % 4 / 2) + 8 * (lane & 1));
        const FloatPair a = unpack<T>(low);
        const FloatPair b = unpack<T>(high);
        out.at(half, g, 0) = a.low;
        out.at(half, g, 1) = a.high;
        out.at(half, g, 2) = b.low;
        out.at(half, g, 3) = b.high;
      }
    }
  }
  return out;
}

// Bytes of a row of the boxes by which a value is stored: all its columns, 128 bytes at most.
template <class T, class Value>
constexpr int store_row_bytes = min_of(Value::cols* static_cast<int>(sizeof(T)), box_row_bytes);

// Whether a warp has 16 columns of a value, of 64 rows, and not 16 rows.
template <class Value>
constexpr bool has_columns = false;

// Writes what box `part` takes of a warp's 16 rows.
template <class T, int each, int groups>
FUSELINE_DEVICE void write_box(u32 box, u32 first_row, const Fragment<each, groups>& x, int part) {
  constexpr int row_bytes = store_row_bytes<T, Fragment<each, groups>>;
  constexpr int boxes = Fragment<each, groups>::cols * sizeof(T) / row_bytes;
  const u32 lane = threadIdx.x % 32;
  if constexpr (each * sizeof(T) == 4) {  // a word a thread: stmatrix
#pragma unroll
    for (int g = 0; g < groups; g += 2) {
      u32 words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if constexpr (each == 2)
          words[w] = pack<T>(x.at(w % 2, g + w / 2, 0), x.at(w % 2, g + w / 2, 1));
        else
          words[w] = __float_as_uint(x.at(w % 2, g + w / 2, 0));
      }
#if __CUDA_ARCH__ >= 900
      stmatrix_x4(fragment_address<row_bytes>(box, first_row, g), words);
#else
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const u32 row = first_row + static_cast<u32>(fragment_row(static_cast<int>(lane), w % 2));
        store_shared(box + swizzle<row_bytes>(row, g + w / 2) + 4 * (lane % 4), words[w]);
      }
#endif
    }
  } else if constexpr (each * sizeof(T) == 8) {  // two words a thread
#pragma unroll
    for (int i = 0; i < groups / boxes; ++i) {
      const int g = part * groups / boxes + i;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u32 row = first_row + static_cast<u32>(fragment_row(static_cast<int>(lane), half));
        u32 low, high;
        if constexpr (each == 4) {
          low = pack<T>(x.at(half, g, 0), x.at(half, g, 1));
          high = pack<T>(x.at(half, g, 2), x.at(half, g, 3));
        } else {
          low = __float_as_uint(x.at(half, g, 0));
          high = __float_as_uint(x.at(half, g, 1));
        }
        store_shared(box + swizzle<row_bytes>(row, 2 * i + lane % 4 / 2) + 8 * (lane & 1), low,
                     high);
      }
    }
  } else if constexpr (sizeof(T) == 1) {  // two codes a thread, half a word
    static_assert(each == 2, "codes are stored as wide as the accumulator");
#pragma unroll
    for (int g = 0; g < groups; ++g)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u32 row = first_row + static_cast<u32>(fragment_row(static_cast<int>(lane), half));
        store_shared_half(box + swizzle<row_bytes>(row, g / 2) + g % 2 * 8 + lane % 4 * 2,
                          pack<T>(x.at(half, g, 0), x.at(half, g, 1)));
      }
  } else {  // half a word a thread: neighbours swap, so that each has a whole word of two groups
    static_assert(each == 1 && sizeof(T) == 2, "no such store");
    const bool odd = lane % 2 != 0;
#pragma unroll
    for (int g = 0; g < groups; g += 2) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float even_group = x.at(half, g, 0);
        const float odd_group = x.at(half, g + 1, 0);
        const float got = __shfl_xor_sync(0xffffffffU, odd ? even_group : odd_group, 1);
        const u32 word = odd ? pack<T>(got, odd_group) : pack<T>(even_group, got);
        const u32 row = first_row + static_cast<u32>(fragment_row(static_cast<int>(lane), half));
        store_shared(box + swizzle<row_bytes>(row, g / 2) + 8 * (lane & 1) + 4 * (lane % 4 / 2),
                     word);
      }
    }
  }
}

}  // namespace fuseline::gpu
