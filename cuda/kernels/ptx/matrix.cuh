// Movement of 8 × 8 matrices of 16-bit elements between shared memory and registers, and the
// Ampere tensor-core instruction. Lane l of a warp holds of each matrix the word (two elements) of
// row l / 4, columns 2 (l mod 4) and + 1; lanes 8i to 8i + 7 give the addresses of matrix i's rows.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

FUSELINE_DEVICE void ldmatrix_x4(u32 (&words)[4], u32 row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row_address)
               : "memory");
}
// Each matrix is transposed on the way.
FUSELINE_DEVICE void ldmatrix_x4_transposed(u32 (&words)[4], u32 row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row_address)
               : "memory");
}
FUSELINE_DEVICE void stmatrix_x4(u32 row_address, const u32 (&words)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
      : "memory");
}
FUSELINE_DEVICE void stmatrix_x4_transposed(u32 row_address, const u32 (&words)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
      : "memory");
}

// One matrix across the warp's lanes, transposed.
FUSELINE_DEVICE u32 transposed(u32 word) {
  u32 turned;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
  return turned;
}

// The lower half of a word.
FUSELINE_DEVICE void store_shared_half(u32 address, u32 word) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(static_cast<u16>(word)) : "memory");
}
FUSELINE_DEVICE void store_shared(u32 address, u32 word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}
FUSELINE_DEVICE void store_shared(u32 address, u32 low, u32 high) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(low), "r"(high) : "memory");
}
FUSELINE_DEVICE void store_shared(u32 address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
FUSELINE_DEVICE u32 load_shared(u32 address) {
  u32 word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}
FUSELINE_DEVICE void load_shared(u32& low, u32& high, u32 address) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
               : "=r"(low), "=r"(high)
               : "r"(address)
               : "memory");
}
FUSELINE_DEVICE float load_shared_float(u32 address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

// d[16, 8] += a[16, 16] b[8, 16]^T. d: lane l has rows l/4 and l/4 + 8, columns 2 (l mod 4), + 1.
template <class Element>
FUSELINE_DEVICE void mma_16x8x16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <>
FUSELINE_DEVICE void mma_16x8x16<bf16>(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
FUSELINE_DEVICE void mma_16x8x16<fp16>(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

FUSELINE_DEVICE uint4 load_shared_16(u32 address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
FUSELINE_DEVICE void store_shared_16(u32 address, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

}  // namespace fuseline::gpu
