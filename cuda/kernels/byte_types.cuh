// Elements of one byte as streams and epilogues load and store them. Rounding is to nearest, ties
// to even; what is too large becomes the largest code.
#pragma once

#include "codes.cuh"

namespace fuseline::gpu {

// Whole numbers that name rows may be such elements too.
struct e4m3 {
  unsigned char code;
  FUSELINE_HD explicit operator int() const {
    const int exponent = (code >> 3 & 15) - 10;  // of the last of four digits
    const int digits = (code & 7) + (exponent > -10 ? 8 : 0);
    const int size = exponent < 0 ? digits >> -exponent : digits << exponent;
    return (code & 0x80) != 0 ? -size : size;
  }
};
struct int8 {
  signed char code;
  FUSELINE_HD explicit operator int() const { return code; }
};

template <class T>
constexpr Codes codes_of_type = Codes::none;
template <>
constexpr Codes codes_of_type<e4m3> = Codes::e4m3;
template <>
constexpr Codes codes_of_type<int8> = Codes::int8;

// Two codes in the lower half of a word, `low` at the lower address.
template <>
FUSELINE_DEVICE u32 pack<e4m3>(float low, float high) {
#if __CUDA_ARCH__ >= 890
  u16 both;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
  return both;
#else
  u32 both = 0;
  const float values[2] = {low, high};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 sign = __float_as_uint(values[i]) >> 24 & 0x80U;
    const float x = fminf(fabsf(values[i]), 448.0F);
    u32 code;
    if (x < 0x1p-6F) {
      code = __float2uint_rn(x * 0x1p9F);  // steps of 2^-9; 8 of them are the least normal code
    } else {
      const u32 bits = __float_as_uint(x);
      code = ((bits + 0x7ffffU + (bits >> 20 & 1U)) >> 20) - (120U << 3);
    }
    both |= (sign | code) << (8 * i);
  }
  return both;
#endif
}
template <>
FUSELINE_DEVICE u32 pack<int8>(float low, float high) {
  const int a = max_of(-128, min_of(127, __float2int_rn(low)));
  const int b = max_of(-128, min_of(127, __float2int_rn(high)));
  return (static_cast<u32>(a) & 0xffU) | (static_cast<u32>(b) & 0xffU) << 8;
}

// Eight of them, and four.
template <class T>
FUSELINE_DEVICE void unpack_bytes(uint2 words, float (&to)[8]) {
  constexpr Codes codes = codes_of_type<T>;
  const u32 pairs[4] = {
      code_pair<codes, 0>(words.x, words.y), code_pair<codes, 1>(words.x, words.y),
      code_pair<codes, 2>(words.x, words.y), code_pair<codes, 3>(words.x, words.y)};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const FloatPair pair = unpack<bf16>(pairs[i]);
    to[2 * i] = pair.low;
    to[2 * i + 1] = pair.high;
  }
}
template <class T>
FUSELINE_DEVICE u32 pack_bytes(float a, float b, float c, float d) {
  return pack<T>(a, b) | pack<T>(c, d) << 16;
}

FUSELINE_DEVICE float to_float(e4m3 x) {
  return unpack<bf16>(code_pair<Codes::e4m3, 0>(x.code, 0U)).low;
}
FUSELINE_DEVICE float to_float(int8 x) { return static_cast<float>(x.code); }
template <>
FUSELINE_DEVICE e4m3 from_float<e4m3>(float x) {
  return {static_cast<unsigned char>(pack<e4m3>(x, 0.0F))};
}
template <>
FUSELINE_DEVICE int8 from_float<int8>(float x) {
  return {static_cast<signed char>(pack<int8>(x, 0.0F))};
}

}  // namespace fuseline::gpu
