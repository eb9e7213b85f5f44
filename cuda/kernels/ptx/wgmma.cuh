// wgmma: four warps multiply a 64 × 16 tile of A with an N × 16 tile of B, both in shared memory,
// into fp32 registers, asynchronously. A tile is named by a 64-bit descriptor. Tiles of e4m3 codes
// have 32 columns: the same 32 bytes a row.
//
// Sums of products of codes keep fewer bits than fp32. One instruction adds 32 products to a sum
// with about 13 bits behind the point of the largest of them and drops the rest, so that the sum of
// K codes loses about K / 32 times half of the last of these bits: 0.1 to 0.3 % of the result for K
// of 4,096 to 11,008, where rounding to bf16 costs 0.2 %.
//
// Accumulators: warp w of the four holds rows 16 w to 16 w + 15; in it, lane l has d[4 j + 2 h + e]
// = row l/4 + 8 h, column 8 j + 2 (l mod 4) + e.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

struct e4m3;  // byte_types.cuh

// Descriptor of a tile in the swizzle of its rows, 128 or 64 bytes. Fields, each in units of 16
// bytes: bits 0-13 address, 16-29 leading offset, 32-45 stride offset; bits 62-63: 1 = 128-byte
// swizzle, 2 = 64-byte swizzle.
//   contiguous along K:  rows of 64 elements (32); stride offset = 8 rows (1,024 bytes, or 512).
//   contiguous along M or N:  blocks of 64 elements; leading offset = from block to block, stride
//   offset = 8 steps of K (1,024 bytes).
// All tiles here differ only in the lower half, so only that is computed and passed about; adding
// bytes / 16 moves a tile.
FUSELINE_DEVICE u32 wgmma_tile(u32 address, u32 leading_bytes) {
  return (leading_bytes >> 4 << 16) | ((address & 0x3ffff) >> 4);
}
template <int row_bytes = 128>
FUSELINE_DEVICE u64 wgmma_descriptor(u32 tile) {
  static_assert(row_bytes == 128 || row_bytes == 64, "no such swizzle");
  constexpr u64 upper = (u64{row_bytes == 128 ? 1 : 2} << 62) | (u64{8 * row_bytes >> 4} << 32);
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

// `count` of the accumulators from p · count on, where several instructions make one tile.
template <int count, int all>
FUSELINE_DEVICE float (&part_of(float (&d)[all], int p))[count] {
  return reinterpret_cast<float(&)[count]>(d[p * count]);
}

// d[64, N] = a b^T (+ d if `accumulate`). a_major, b_major: 0 = contiguous along K, 1 = along M, N.
// row_bytes: of both tiles in shared memory.
template <class Element, int N, int a_major, int b_major, int row_bytes = 128>
struct Wgmma;

#define FUSELINE_D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define FUSELINE_D8(i) FUSELINE_D4(i), FUSELINE_D4((i) + 4)
#define FUSELINE_D16(i) FUSELINE_D8(i), FUSELINE_D8((i) + 8)
#define FUSELINE_D32(i) FUSELINE_D16(i), FUSELINE_D16((i) + 16)
#define FUSELINE_D64(i) FUSELINE_D32(i), FUSELINE_D32((i) + 32)
#define FUSELINE_D96(i) FUSELINE_D64(i), FUSELINE_D32((i) + 64)
#define FUSELINE_D128(i) FUSELINE_D64(i), FUSELINE_D64((i) + 64)

// Names of the first registers in the text: R40 is R32 and eight more.
#define FUSELINE_R8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define FUSELINE_R16 FUSELINE_R8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define FUSELINE_R24 FUSELINE_R16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define FUSELINE_R32 FUSELINE_R24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define FUSELINE_R40 FUSELINE_R32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define FUSELINE_R48 FUSELINE_R40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define FUSELINE_R56 FUSELINE_R48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define FUSELINE_R64 FUSELINE_R56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define FUSELINE_R68 FUSELINE_R64 ",%64,%65,%66,%67"
#define FUSELINE_R72 FUSELINE_R68 ",%68,%69,%70,%71"
#define FUSELINE_R76 FUSELINE_R72 ",%72,%73,%74,%75"
#define FUSELINE_R80 FUSELINE_R76 ",%76,%77,%78,%79"
#define FUSELINE_R88 FUSELINE_R80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define FUSELINE_R96 FUSELINE_R88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define FUSELINE_R104 FUSELINE_R96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define FUSELINE_R112 FUSELINE_R104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define FUSELINE_R120 FUSELINE_R112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define FUSELINE_R128 FUSELINE_R120 ",%120,%121,%122,%123,%124,%125,%126,%127"

// One specialisation: `registers` names d, then follow the operands' numbers in the text.
#define FUSELINE_WGMMA(element, type, n, outputs, registers, a, b, acc, ta, tb)                   \
  template <int a_major, int b_major, int row_bytes>                                              \
  struct Wgmma<element, n, a_major, b_major, row_bytes> {                                         \
    static FUSELINE_DEVICE void run(float (&d)[n / 2], u32 a_tile, u32 b_tile, int accumulate) {  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " acc                                        \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" registers \
                   "}, " a ", " b ", p, 1, 1, " ta ", " tb ";\n}\n"                               \
                   : outputs                                                                      \
                   : "l"(wgmma_descriptor<row_bytes>(a_tile)),                                    \
                     "l"(wgmma_descriptor<row_bytes>(b_tile)), "r"(accumulate), "n"(a_major),     \
                     "n"(b_major));                                                               \
    }                                                                                             \
  };

// The same of codes. They have no transposed form: both tiles are contiguous along K.
#define FUSELINE_WGMMA_OF_CODES(element, type, n, outputs, registers, a, b, acc, ta, tb)          \
  template <int row_bytes>                                                                        \
  struct Wgmma<element, n, 0, 0, row_bytes> {                                                     \
    static FUSELINE_DEVICE void run(float (&d)[n / 2], u32 a_tile, u32 b_tile, int accumulate) {  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " acc                                        \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32." type "." type " {" registers \
                   "}, " a ", " b ", p, 1, 1;\n}\n"                                               \
                   : outputs                                                                      \
                   : "l"(wgmma_descriptor<row_bytes>(a_tile)),                                    \
                     "l"(wgmma_descriptor<row_bytes>(b_tile)), "r"(accumulate));                  \
    }                                                                                             \
  };

#define FUSELINE_LIST(...) __VA_ARGS__
#define FUSELINE_WGMMA_SHAPES(form, element, type)                                                 \
  form(element, type, 16, FUSELINE_D8(0), FUSELINE_R8, "%8", "%9", "%10", "%11", "%12")            \
  form(element, type, 32, FUSELINE_D16(0), FUSELINE_R16, "%16", "%17", "%18", "%19",               \
                 "%20")                                                                            \
  form(element, type, 48, FUSELINE_LIST(FUSELINE_D16(0), FUSELINE_D8(16)), FUSELINE_R24,           \
                 "%24", "%25", "%26", "%27", "%28")                                                \
  form(element, type, 64, FUSELINE_D32(0), FUSELINE_R32, "%32", "%33", "%34", "%35",               \
                 "%36")                                                                            \
  form(element, type, 80, FUSELINE_LIST(FUSELINE_D32(0), FUSELINE_D8(32)), FUSELINE_R40,           \
                 "%40", "%41", "%42", "%43", "%44")                                                \
  form(element, type, 96, FUSELINE_LIST(FUSELINE_D32(0), FUSELINE_D16(32)),                        \
                 FUSELINE_R48, "%48", "%49", "%50", "%51", "%52")                                  \
  form(element, type, 112,                                                                         \
                 FUSELINE_LIST(FUSELINE_D32(0), FUSELINE_D16(32), FUSELINE_D8(48)), FUSELINE_R56,  \
                 "%56", "%57", "%58", "%59", "%60")                                                \
  form(element, type, 128, FUSELINE_D64(0), FUSELINE_R64, "%64", "%65", "%66", "%67",              \
                 "%68")                                                                            \
  form(element, type, 136, FUSELINE_LIST(FUSELINE_D64(0), FUSELINE_D4(64)),                        \
                 FUSELINE_R68, "%68", "%69", "%70", "%71", "%72")                                  \
  form(element, type, 144, FUSELINE_LIST(FUSELINE_D64(0), FUSELINE_D8(64)),                        \
                 FUSELINE_R72, "%72", "%73", "%74", "%75", "%76")                                  \
  form(element, type, 152,                                                                         \
                 FUSELINE_LIST(FUSELINE_D64(0), FUSELINE_D8(64), FUSELINE_D4(72)), FUSELINE_R76,   \
                 "%76", "%77", "%78", "%79", "%80")                                                \
  form(element, type, 160, FUSELINE_LIST(FUSELINE_D64(0), FUSELINE_D16(64)),                       \
                 FUSELINE_R80, "%80", "%81", "%82", "%83", "%84")                                  \
  form(element, type, 176,                                                                         \
                 FUSELINE_LIST(FUSELINE_D64(0), FUSELINE_D16(64), FUSELINE_D8(80)), FUSELINE_R88,  \
                 "%88", "%89", "%90", "%91", "%92")                                                \
  form(element, type, 192, FUSELINE_D96(0), FUSELINE_R96, "%96", "%97", "%98", "%99",              \
                 "%100")                                                                           \
  form(element, type, 208, FUSELINE_LIST(FUSELINE_D96(0), FUSELINE_D8(96)),                        \
                 FUSELINE_R104, "%104", "%105", "%106", "%107", "%108")                            \
  form(element, type, 224, FUSELINE_LIST(FUSELINE_D96(0), FUSELINE_D16(96)),                       \
                 FUSELINE_R112, "%112", "%113", "%114", "%115", "%116")                            \
  form(element, type, 240,                                                                         \
                 FUSELINE_LIST(FUSELINE_D96(0), FUSELINE_D16(96), FUSELINE_D8(112)),               \
                 FUSELINE_R120, "%120", "%121", "%122", "%123", "%124")                            \
  form(element, type, 256, FUSELINE_D128(0), FUSELINE_R128, "%128", "%129", "%130",                \
                 "%131", "%132")

FUSELINE_WGMMA_SHAPES(FUSELINE_WGMMA, bf16, "bf16")
FUSELINE_WGMMA_SHAPES(FUSELINE_WGMMA, fp16, "f16")
FUSELINE_WGMMA_SHAPES(FUSELINE_WGMMA_OF_CODES, e4m3, "e4m3")

#undef FUSELINE_WGMMA_SHAPES
#undef FUSELINE_LIST
#undef FUSELINE_WGMMA
#undef FUSELINE_WGMMA_OF_CODES
#undef FUSELINE_R8
#undef FUSELINE_R16
#undef FUSELINE_R24
#undef FUSELINE_R32
#undef FUSELINE_R40
#undef FUSELINE_R48
#undef FUSELINE_R56
#undef FUSELINE_R64
#undef FUSELINE_R68
#undef FUSELINE_R72
#undef FUSELINE_R76
#undef FUSELINE_R80
#undef FUSELINE_R88
#undef FUSELINE_R96
#undef FUSELINE_R104
#undef FUSELINE_R112
#undef FUSELINE_R120
#undef FUSELINE_R128
#undef FUSELINE_D4
#undef FUSELINE_D8
#undef FUSELINE_D16
#undef FUSELINE_D32
#undef FUSELINE_D64
#undef FUSELINE_D96
#undef FUSELINE_D128

}  // namespace fuseline::gpu
