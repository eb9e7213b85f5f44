// wgmma: four warps multiply a 64 × 16 tile of A with an N × 16 tile of B, both in shared memory,
// into fp32 registers, asynchronously. A tile is named by a 64-bit descriptor.
//
// Accumulators: warp w of the four holds rows 16 w to 16 w + 15; in it, lane l has d[4 j + 2 h + e]
// = row l/4 + 8 h, column 8 j + 2 (l mod 4) + e.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

// Descriptor of a tile in the 128-byte swizzle. Fields, each in units of 16 bytes:
// bits 0-13 address, 16-29 leading offset, 32-45 stride offset; bits 62-63: 1 = 128-byte swizzle.
//   contiguous along K:  rows of 64 elements; stride offset = 8 rows (1,024 bytes).
//   contiguous along M or N:  blocks of 64 elements; leading offset = from block to block, stride
//   offset = 8 steps of K (1,024 bytes).
// All tiles here differ only in the lower half, so only that is computed and passed about; adding
// bytes / 16 moves a tile.
FUSELINE_DEVICE u32 wgmma_tile(u32 address, u32 leading_bytes) {
  return (leading_bytes >> 4 << 16) | ((address & 0x3ffff) >> 4);
}
FUSELINE_DEVICE u64 wgmma_descriptor(u32 tile) {
  constexpr u64 upper = (u64{1} << 62) | (u64{1024 >> 4} << 32);
  return upper | tile;
}

// Before the first wgmma, and after registers were written otherwise.
FUSELINE_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
FUSELINE_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most `pending` committed groups are still under way.
template <int pending>
FUSELINE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Keeps the compiler from moving uses of accumulators across a wait.
template <int count>
FUSELINE_DEVICE void wgmma_pin(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// d[64, N] = a b^T (+ d if `accumulate`). a_major, b_major: 0 = contiguous along K, 1 = along M, N.
template <class Element, int N, int a_major, int b_major>
struct Wgmma;

#define FUSELINE_D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define FUSELINE_D16(i) \
  FUSELINE_D4(i), FUSELINE_D4((i) + 4), FUSELINE_D4((i) + 8), FUSELINE_D4((i) + 12)
#define FUSELINE_D32(i) FUSELINE_D16(i), FUSELINE_D16((i) + 16)
#define FUSELINE_D64(i) FUSELINE_D32(i), FUSELINE_D32((i) + 32)
#define FUSELINE_D96(i) FUSELINE_D64(i), FUSELINE_D32((i) + 64)
#define FUSELINE_D128(i) FUSELINE_D64(i), FUSELINE_D64((i) + 64)

#define FUSELINE_R32_0                                                                     \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31"
#define FUSELINE_R32_1                                                                       \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53," \
  "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define FUSELINE_R32_2                                                                       \
  "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85," \
  "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define FUSELINE_R32_3                                                                     \
  "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113," \
  "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

// One specialisation: `registers` names d, then follow the operands' numbers in the text.
#define FUSELINE_WGMMA(element, type, n, outputs, registers, a, b, acc, ta, tb)                   \
  template <int a_major, int b_major>                                                             \
  struct Wgmma<element, n, a_major, b_major> {                                                    \
    static FUSELINE_DEVICE void run(float (&d)[n / 2], u32 a_tile, u32 b_tile, int accumulate) {  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " acc                                        \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" registers \
                   "}, " a ", " b ", p, 1, 1, " ta ", " tb ";\n}\n"                               \
                   : outputs                                                                      \
                   : "l"(wgmma_descriptor(a_tile)), "l"(wgmma_descriptor(b_tile)),                \
                     "r"(accumulate), "n"(a_major), "n"(b_major));                                \
    }                                                                                             \
  };

#define FUSELINE_WGMMA_SHAPES(element, type)                                                       \
  FUSELINE_WGMMA(element, type, 64, FUSELINE_D32(0), FUSELINE_R32_0, "%32", "%33", "%34", "%35",   \
                 "%36")                                                                            \
  FUSELINE_WGMMA(element, type, 128, FUSELINE_D64(0), FUSELINE_R32_0 "," FUSELINE_R32_1, "%64",    \
                 "%65", "%66", "%67", "%68")                                                       \
  FUSELINE_WGMMA(element, type, 192, FUSELINE_D96(0),                                              \
                 FUSELINE_R32_0 "," FUSELINE_R32_1 "," FUSELINE_R32_2, "%96", "%97", "%98", "%99", \
                 "%100")                                                                           \
  FUSELINE_WGMMA(element, type, 256, FUSELINE_D128(0),                                             \
                 FUSELINE_R32_0 "," FUSELINE_R32_1 "," FUSELINE_R32_2 "," FUSELINE_R32_3, "%128",  \
                 "%129", "%130", "%131", "%132")

FUSELINE_WGMMA_SHAPES(bf16, "bf16")
FUSELINE_WGMMA_SHAPES(fp16, "f16")

#undef FUSELINE_WGMMA_SHAPES
#undef FUSELINE_WGMMA
#undef FUSELINE_R32_0
#undef FUSELINE_R32_1
#undef FUSELINE_R32_2
#undef FUSELINE_R32_3
#undef FUSELINE_D4
#undef FUSELINE_D16
#undef FUSELINE_D32
#undef FUSELINE_D64
#undef FUSELINE_D96
#undef FUSELINE_D128

}  // namespace fuseline::gpu
