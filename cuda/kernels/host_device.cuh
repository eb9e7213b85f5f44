// Words that device code, NVRTC and the host's compiler share. Headers that include only this one
// (address functions, tile orders, fragments, maps) also compile with a plain C++ compiler, so
// their tests need no GPU.
#pragma once

#if defined(__CUDACC__)
#define FUSELINE_HD __host__ __device__ __forceinline__
#define FUSELINE_UNROLL _Pragma("unroll")
#define FUSELINE_UNROLL_2 _Pragma("unroll 2")
#define FUSELINE_NO_UNROLL _Pragma("unroll 1")
#else
#define FUSELINE_HD inline
#define FUSELINE_UNROLL
#define FUSELINE_UNROLL_2
#define FUSELINE_NO_UNROLL
#endif

namespace fuseline::gpu {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

FUSELINE_HD constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
FUSELINE_HD constexpr int min_of(int a, int b) { return a < b ? a : b; }
FUSELINE_HD constexpr int max_of(int a, int b) { return a > b ? a : b; }

}  // namespace fuseline::gpu
