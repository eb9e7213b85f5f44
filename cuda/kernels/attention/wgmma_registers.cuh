// wgmma with A in registers: the probabilities go from the accumulators of one product straight
// into the next. A thread's four words of a 64 × 16 tile of A are, of its warp's 16 rows, with
// lane l: (row l/4, columns 2 (l mod 4), + 1), (row + 8, same), (row, columns + 8), (row + 8,
// columns + 8). So accumulators d[8 i] to d[8 i + 7] make, in pairs and in order, the words of step
// i of the next product.
#pragma once

#include "../ptx/wgmma.cuh"

namespace fuseline::gpu {

// The assembler moves a wait for products up over arithmetic that should run meanwhile, since
// nothing ties the two, but it moves neither over a branch. So this branches on the last result,
// which is never so small; if it were, nothing would happen.
FUSELINE_DEVICE void compute_before_wait(float last) {
  for (int i = 0; i < 2 && last < -1e38F; ++i) asm volatile("nanosleep.u32 1;");
}

// d[64, N] = a b^T (+ d if `accumulate`). b_major as in Wgmma.
template <class Element, int N, int b_major>
struct WgmmaRegisters;

#define FUSELINE_D8(i)                                                                \
  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), \
      "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define FUSELINE_D32 FUSELINE_D8(0), FUSELINE_D8(8), FUSELINE_D8(16), FUSELINE_D8(24)
#define FUSELINE_D40 FUSELINE_D32, FUSELINE_D8(32)
#define FUSELINE_D48 FUSELINE_D40, FUSELINE_D8(40)
#define FUSELINE_D56 FUSELINE_D48, FUSELINE_D8(48)
#define FUSELINE_D64 FUSELINE_D56, FUSELINE_D8(56)
#define FUSELINE_D72 FUSELINE_D64, FUSELINE_D8(64)
#define FUSELINE_D80 FUSELINE_D72, FUSELINE_D8(72)
#define FUSELINE_D88 FUSELINE_D80, FUSELINE_D8(80)
#define FUSELINE_D96 FUSELINE_D88, FUSELINE_D8(88)
#define FUSELINE_D104 FUSELINE_D96, FUSELINE_D8(96)
#define FUSELINE_D112 FUSELINE_D104, FUSELINE_D8(104)
#define FUSELINE_D120 FUSELINE_D112, FUSELINE_D8(112)
#define FUSELINE_D128 FUSELINE_D120, FUSELINE_D8(120)

#define FUSELINE_R32                                                                       \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31"
#define FUSELINE_R40 FUSELINE_R32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define FUSELINE_R48 FUSELINE_R40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define FUSELINE_R56 FUSELINE_R48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define FUSELINE_R64 FUSELINE_R56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define FUSELINE_R72 FUSELINE_R64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define FUSELINE_R80 FUSELINE_R72 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define FUSELINE_R88 FUSELINE_R80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define FUSELINE_R96 FUSELINE_R88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define FUSELINE_R104 FUSELINE_R96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define FUSELINE_R112 FUSELINE_R104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define FUSELINE_R120 FUSELINE_R112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define FUSELINE_R128 FUSELINE_R120 ",%120,%121,%122,%123,%124,%125,%126,%127"

// `a0` to `a3`, `b` and `flag` are the operands' numbers in the text.
#define FUSELINE_WGMMA(element, type, n, outputs, registers, a0, a1, a2, a3, b, flag, major)      \
  template <int b_major>                                                                          \
  struct WgmmaRegisters<element, n, b_major> {                                                    \
    static FUSELINE_DEVICE void run(float (&d)[n / 2], const u32 (&a)[4], u32 b_tile,             \
                                    int accumulate) {                                             \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " flag                                       \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" registers \
                   "}, {" a0 "," a1 "," a2 "," a3 "}, " b ", p, 1, 1, " major ";\n}\n"            \
                   : outputs                                                                      \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(wgmma_descriptor(b_tile)),   \
                     "r"(accumulate), "n"(b_major));                                              \
    }                                                                                             \
  };
#define FUSELINE_WGMMA_SHAPES(element, type)                                                   \
  FUSELINE_WGMMA(element, type, 64, FUSELINE_D32, FUSELINE_R32, "%32", "%33", "%34", "%35",    \
                 "%36", "%37", "%38")                                                          \
  FUSELINE_WGMMA(element, type, 80, FUSELINE_D40, FUSELINE_R40, "%40", "%41", "%42", "%43",    \
                 "%44", "%45", "%46")                                                          \
  FUSELINE_WGMMA(element, type, 96, FUSELINE_D48, FUSELINE_R48, "%48", "%49", "%50", "%51",    \
                 "%52", "%53", "%54")                                                          \
  FUSELINE_WGMMA(element, type, 112, FUSELINE_D56, FUSELINE_R56, "%56", "%57", "%58", "%59",   \
                 "%60", "%61", "%62")                                                          \
  FUSELINE_WGMMA(element, type, 128, FUSELINE_D64, FUSELINE_R64, "%64", "%65", "%66", "%67",   \
                 "%68", "%69", "%70")                                                          \
  FUSELINE_WGMMA(element, type, 144, FUSELINE_D72, FUSELINE_R72, "%72", "%73", "%74", "%75",   \
                 "%76", "%77", "%78")                                                          \
  FUSELINE_WGMMA(element, type, 160, FUSELINE_D80, FUSELINE_R80, "%80", "%81", "%82", "%83",   \
                 "%84", "%85", "%86")                                                          \
  FUSELINE_WGMMA(element, type, 176, FUSELINE_D88, FUSELINE_R88, "%88", "%89", "%90", "%91",   \
                 "%92", "%93", "%94")                                                          \
  FUSELINE_WGMMA(element, type, 192, FUSELINE_D96, FUSELINE_R96, "%96", "%97", "%98", "%99",   \
                 "%100", "%101", "%102")                                                       \
  FUSELINE_WGMMA(element, type, 208, FUSELINE_D104, FUSELINE_R104, "%104", "%105", "%106",     \
                 "%107", "%108", "%109", "%110")                                               \
  FUSELINE_WGMMA(element, type, 224, FUSELINE_D112, FUSELINE_R112, "%112", "%113", "%114",     \
                 "%115", "%116", "%117", "%118")                                               \
  FUSELINE_WGMMA(element, type, 240, FUSELINE_D120, FUSELINE_R120, "%120", "%121", "%122",     \
                 "%123", "%124", "%125", "%126")                                               \
  FUSELINE_WGMMA(element, type, 256, FUSELINE_D128, FUSELINE_R128, "%128", "%129", "%130",     \
                 "%131", "%132", "%133", "%134")

FUSELINE_WGMMA_SHAPES(bf16, "bf16")
FUSELINE_WGMMA_SHAPES(fp16, "f16")

#undef FUSELINE_WGMMA_SHAPES
#undef FUSELINE_WGMMA
#undef FUSELINE_R32
#undef FUSELINE_R40
#undef FUSELINE_R48
#undef FUSELINE_R56
#undef FUSELINE_R64
#undef FUSELINE_R72
#undef FUSELINE_R80
#undef FUSELINE_R88
#undef FUSELINE_R96
#undef FUSELINE_R104
#undef FUSELINE_R112
#undef FUSELINE_R120
#undef FUSELINE_R128
#undef FUSELINE_D8
#undef FUSELINE_D32
#undef FUSELINE_D40
#undef FUSELINE_D48
#undef FUSELINE_D56
#undef FUSELINE_D64
#undef FUSELINE_D72
#undef FUSELINE_D80
#undef FUSELINE_D88
#undef FUSELINE_D96
#undef FUSELINE_D104
#undef FUSELINE_D112
#undef FUSELINE_D120
#undef FUSELINE_D128

}  // namespace fuseline::gpu
