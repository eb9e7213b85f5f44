// How a warp reads weights in codes from global memory: of its groups of eight rows of B a lane has
// the same row of each, 16 bytes of it at a time, and the scales of these.
#pragma once

#include "codes.cuh"

namespace fuseline::gpu {

// `a_in_codes`: the other operand is codes too.
template <class Element, class Weight, int groups, bool a_in_codes>
struct WeightLoads {
  // Codes of a lane's load, of those of four lanes side by side, and how many eights a lane has.
  static constexpr int unit = 128 / Weight::bits, chunk = 4 * unit, eights = unit / 8;
  static constexpr bool in_rows = Weight::group > 0;  // scales along K
  // Scales are factors of sums, and codes are multiplied as they are.
  static constexpr bool alone =
      !in_rows || a_in_codes || (Weight::group % chunk == 0 && !Weight::zeros);
  static constexpr bool one_scale = in_rows && Weight::group % unit == 0;  // of a load
  static constexpr int scales = !in_rows ? 0 : one_scale ? 1 : eights;
  // A lane's rows lie in one block of rows that share scales: it reads and keeps those once.
  static constexpr bool one_row = Weight::group_rows % (8 * groups) == 0;
  static constexpr int scale_sets = one_row ? 1 : groups;

  struct Load {
    uint4 codes[groups];
    u32 scale[scale_sets][scales > 0 ? scales : 1];  // bits
    float zero[scale_sets][scales > 0 && Weight::zeros ? scales : 1];
    float tensor_scale;
  };

  // Whole chunks share a scale.
  static constexpr bool chunk_scale = in_rows && Weight::group % chunk == 0;

  const unsigned char* rows[groups];  // this lane's 16 bytes of chunk 0
  u32 scale_rows[scale_sets], zero_rows[scale_sets];  // where rows of them begin, in numbers
  float tensor_scale = 1.0F;

  // Rows `first` onward of a matrix; columns of the result that do not exist repeat the last, and
  // nobody stores what they become.
  template <class Args>
  FUSELINE_DEVICE void begin(const Args& args, int matrix, int first) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    if constexpr (Weight::tensor_scale) tensor_scale = *args.tensor_scale;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const int n = min_of(first + 8 * g + lane / 4, args.N - 1);
      rows[g] =
          args.b + (static_cast<long long>(matrix) * args.N + n) * args.b_row_bytes + lane % 4 * 16;
      if (g >= scale_sets) continue;
      const auto row = static_cast<u32>(matrix * args.scale_rows + Weight::scale_row(n));
      scale_rows[g] = row * static_cast<u32>(args.scale_ld);
      if constexpr (Weight::zeros) zero_rows[g] = row * static_cast<u32>(args.zero_ld);
    }
  }

  template <class Args>
  FUSELINE_DEVICE void load(Load& to, const Args& args, int c) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const long long at = static_cast<long long>(c) * (chunk * Weight::bits / 8);
    to.tensor_scale = tensor_scale;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to.codes[g].x), "=r"(to.codes[g].y), "=r"(to.codes[g].z),
                     "=r"(to.codes[g].w)
                   : "l"(rows[g] + at));
      if (g >= scale_sets) continue;
#pragma unroll
      for (int i = 0; i < scales; ++i) {
        // What lies beyond K meets zeros; its scale is the last one.
        const int k = min_of(c * chunk + lane % 4 * unit + (one_scale ? 0 : 8 * i), args.K - 1);
        const auto group =
            static_cast<u32>((chunk_scale ? c * chunk : k) / max_of(Weight::group, 1));
        to.scale[g][i] = load_scale_bits<Weight::scale>(args.scale, scale_rows[g] + group);
        if constexpr (Weight::zeros)
          to.zero[g][i] = static_cast<float>(args.zero[zero_rows[g] + group]);
      }
    }
  }

  static FUSELINE_DEVICE CodeScale scale_of(const Load& load, int g, int i) {
    CodeScale s;
    const int set = one_row ? 0 : g;
    s.scale = scale_of_bits<Weight::scale>(load.scale[set][i]);
    if constexpr (Weight::tensor_scale) s.scale *= load.tensor_scale;
    if constexpr (Weight::zeros) s.zero = load.zero[set][i];
    return s;
  }

  // Eight codes of group g's row, in the order of their pairs.
  static FUSELINE_DEVICE void pairs(u32 (&to)[4], const Load& load, int g, int e) {
    const u32 words[4] = {load.codes[g].x, load.codes[g].y, load.codes[g].z, load.codes[g].w};
    const u32 low = Weight::bits == 4 ? words[e] : words[2 * e % 4];
    const u32 high = Weight::bits == 4 ? 0U : words[(2 * e + 1) % 4];
    if constexpr (alone) {
      constexpr Codes codes = Weight::codes;
      to[0] = as_element<Element>(code_pair<codes, 0>(low, high));
      to[1] = as_element<Element>(code_pair<codes, 1>(low, high));
      to[2] = as_element<Element>(code_pair<codes, 2>(low, high));
      to[3] = as_element<Element>(code_pair<codes, 3>(low, high));
    } else {
      dequantise<Element, Weight>(to, low, high, scale_of(load, g, one_scale ? 0 : e));
    }
  }
};

}  // namespace fuseline::gpu
