// The 16-bit storage types and their conversions. Arithmetic is fp32 everywhere; a value is rounded
// (to nearest even) once, when it is stored.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "host_device.cuh"

#define FUSELINE_DEVICE __device__ __forceinline__

namespace fuseline::gpu {

using bf16 = __nv_bfloat16;
using fp16 = __half;

// Two values as the 32-bit word that memory holds: `low` at the lower address.
template <class Element>
FUSELINE_DEVICE u32 pack(float low, float high);
template <>
FUSELINE_DEVICE u32 pack<bf16>(float low, float high) {
  u32 word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
template <>
FUSELINE_DEVICE u32 pack<fp16>(float low, float high) {
  u32 word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

struct FloatPair {
  float low, high;
};
template <class Element>
FUSELINE_DEVICE FloatPair unpack(u32 word);
template <>
FUSELINE_DEVICE FloatPair unpack<bf16>(u32 word) {
  // bf16 is the upper half of an fp32.
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000U)};
}
template <>
FUSELINE_DEVICE FloatPair unpack<fp16>(u32 word) {
  const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&word));
  return {pair.x, pair.y};
}

FUSELINE_DEVICE float to_float(bf16 x) { return __bfloat162float(x); }
FUSELINE_DEVICE float to_float(fp16 x) { return __half2float(x); }
FUSELINE_DEVICE float to_float(float x) { return x; }

template <class T>
FUSELINE_DEVICE T from_float(float x);
template <>
FUSELINE_DEVICE bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
FUSELINE_DEVICE fp16 from_float<fp16>(float x) {
  return __float2half_rn(x);
}
template <>
FUSELINE_DEVICE float from_float<float>(float x) {
  return x;
}

}  // namespace fuseline::gpu
