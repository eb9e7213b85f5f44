// Numbers in few bits, as tensor cores take them: codes become pairs of bf16, which hold every code
// exactly, and pairs times their scale are rounded once, so that they have the bits that the
// executor's have.
//
//   e4m3   sign, 4 bits of exponent, 3 of mantissa: moved to their places in a bf16 they make
//          2^-120 times the code, for its subnormals too
//   e2m1   the same with 2^-126
//   int8   0x4300 in front of 7 bits is 128 and so many more; less 128, or 256 where the sign is
//   set int4   0x4300 in front of 4 bits with the sign turned round is 136 and the code
//
// Eight codes that lie side by side make four pairs. Those of 4 bits are pairs of code i and i + 4:
// one mask takes both out of a word, and what they meet lies in the same order
// (`in_order_of_codes`).
#pragma once

#include "element.cuh"

namespace fuseline::gpu {

enum class Codes { none, e4m3, int8, int4, e2m1 };
enum class ScaleType { fp32, bf16, fp16, e4m3, e8m0 };

FUSELINE_HD constexpr int bits_of(Codes codes) {
  return codes == Codes::int4 || codes == Codes::e2m1 ? 4 : 8;
}

// a · b + c of two bf16 each, rounded once.
FUSELINE_DEVICE u32 fma_pair(u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
FUSELINE_DEVICE u32 mul_pair(u32 a, u32 b) { return fma_pair(a, b, 0x80008000U); }

// Pair `i` of 4 of eight codes, as bf16: words low and high for codes of 8 bits, low alone for 4.
template <Codes codes, int i>
FUSELINE_DEVICE u32 code_pair(u32 low, u32 high) {
  if constexpr (codes == Codes::int4) {
    const u32 x = ((low >> (4 * i)) & 0x000f000fU) ^ 0x43084308U;
    return fma_pair(x, 0x3f803f80U, 0xc308c308U);  // less 136
  } else if constexpr (codes == Codes::e2m1) {
    const u32 x = low >> (4 * i);
    return mul_pair(((x & 0x00070007U) << 6) | ((x & 0x00080008U) << 12), 0x7e807e80U);
  } else if constexpr (codes == Codes::int8) {
    const u32 x = __byte_perm(i < 2 ? low : high, 0U, i % 2 == 0 ? 0x4140 : 0x4342);
    return fma_pair((x & 0x00800080U) | 0x43004300U, 0xbf80bf80U, (x & 0x007f007fU) | 0x43004300U);
  } else {
    const u32 x = __byte_perm(i < 2 ? low : high, 0U, i % 2 == 0 ? 0x1404 : 0x3424);
    return mul_pair(((x & 0x7f007f00U) >> 4) | (x & 0x80008000U), 0x7b807b80U);
  }
}

// Eight 16-bit numbers that meet eight codes, in the order of the codes' pairs.
template <Codes codes>
FUSELINE_DEVICE uint4 in_order_of_codes(uint4 x) {
  if constexpr (bits_of(codes) == 8) return x;
  return make_uint4(__byte_perm(x.x, x.z, 0x5410), __byte_perm(x.x, x.z, 0x7632),
                    __byte_perm(x.y, x.w, 0x5410), __byte_perm(x.y, x.w, 0x7632));
}

// Four pairs in the order of the eight codes.
template <Codes codes>
FUSELINE_DEVICE void natural_order(u32 (&pairs)[4]) {
  if constexpr (bits_of(codes) == 8) return;
  const u32 first = __byte_perm(pairs[0], pairs[1], 0x5410);
  const u32 third = __byte_perm(pairs[0], pairs[1], 0x7632);
  const u32 second = __byte_perm(pairs[2], pairs[3], 0x5410);
  const u32 fourth = __byte_perm(pairs[2], pairs[3], 0x7632);
  pairs[0] = first;
  pairs[1] = second;
  pairs[2] = third;
  pairs[3] = fourth;
}

// A pair of exact bf16 in the element type: fp16 holds every code too.
template <class Element>
FUSELINE_DEVICE u32 as_element(u32 pair) {
  const FloatPair x = unpack<bf16>(pair);
  return pack<Element>(x.low, x.high);
}
template <>
FUSELINE_DEVICE u32 as_element<bf16>(u32 pair) {
  return pair;
}

template <class Element>
constexpr bool is_bf16 = false;
template <>
constexpr bool is_bf16<bf16> = true;

// The bits of number `index` of scales, and what they are worth: whoever loads ahead does not wait
// for the bits.
template <ScaleType type>
FUSELINE_DEVICE u32 load_scale_bits(const void* scales, long long index) {
  if constexpr (type == ScaleType::fp32)
    return __ldg(static_cast<const u32*>(scales) + index);
  else if constexpr (type == ScaleType::bf16 || type == ScaleType::fp16)
    return __ldg(static_cast<const u16*>(scales) + index);
  else
    return __ldg(static_cast<const unsigned char*>(scales) + index);
}
template <ScaleType type>
FUSELINE_DEVICE float scale_of_bits(u32 bits) {
  if constexpr (type == ScaleType::fp32) return __uint_as_float(bits);
  if constexpr (type == ScaleType::bf16) return unpack<bf16>(bits).low;
  if constexpr (type == ScaleType::fp16) return unpack<fp16>(bits).low;
  if constexpr (type == ScaleType::e4m3)
    return unpack<bf16>(code_pair<Codes::e4m3, 0>(bits, 0)).low;
  // A power of two: the exponent of an fp32. Its least is a subnormal.
  return __uint_as_float(bits == 0 ? 0x00400000U : bits << 23);
}
template <ScaleType type>
FUSELINE_DEVICE float load_scale(const void* scales, long long index) {
  return scale_of_bits<type>(load_scale_bits<type>(scales, index));
}

// How a weight is stored. `group`: columns that share a scale, 0 for all of a row. `pairs`: rows of
// two matrices take turns, and so do the rows of scales of their blocks.
template <Codes codes_, ScaleType scale_, int group_, int group_rows_ = 1, bool zeros_ = false,
          bool tensor_scale_ = false, bool pairs_ = false>
struct WeightCodes {
  static constexpr Codes codes = codes_;
  static constexpr ScaleType scale = scale_;
  static constexpr int group = group_, group_rows = group_rows_;
  static constexpr bool zeros = zeros_, tensor_scale = tensor_scale_;
  static constexpr bool pairs = pairs_;
  static constexpr int bits = bits_of(codes);

  // The row of scales of the weight's row n.
  static FUSELINE_DEVICE int scale_row(int n) {
    return pairs ? n / 2 / group_rows * 2 + n % 2 : n / group_rows;
  }
};

// The numbers beside some codes of one group.
struct CodeScale {
  float scale = 1.0F, zero = 0.0F;
};

// Eight codes that share a scale become four pairs of (code - zero) · scale, rounded once.
template <class Element, class Weight>
FUSELINE_DEVICE void dequantise(u32 (&pairs)[4], u32 low, u32 high, const CodeScale& by) {
  constexpr Codes codes = Weight::codes;
  u32 code[4] = {code_pair<codes, 0>(low, high), code_pair<codes, 1>(low, high),
                 code_pair<codes, 2>(low, high), code_pair<codes, 3>(low, high)};
  constexpr bool plain = is_bf16<Element> && !Weight::zeros && !Weight::tensor_scale;
  if constexpr (plain && (Weight::scale == ScaleType::bf16 || Weight::scale == ScaleType::e8m0)) {
    // A bf16 holds the scale.
    const u32 s = pack<bf16>(by.scale, by.scale);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = mul_pair(code[i], s);
  } else if constexpr (plain && Weight::scale == ScaleType::fp16 && Weight::bits == 4) {
    // The scale's 11 bits are two bf16: a first part of 8 and the rest, of which 3 remain. The rest
    // times a code is exact, and the sum of both products is rounded once.
    const float first = unpack<bf16>(pack<bf16>(by.scale, by.scale)).low;
    const u32 s = pack<bf16>(first, first);
    const u32 rest = pack<bf16>(by.scale - first, by.scale - first);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = fma_pair(code[i], s, mul_pair(code[i], rest));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const FloatPair x = unpack<bf16>(code[i]);
      pairs[i] = pack<Element>((x.low - by.zero) * by.scale, (x.high - by.zero) * by.scale);
    }
  }
}

}  // namespace fuseline::gpu
