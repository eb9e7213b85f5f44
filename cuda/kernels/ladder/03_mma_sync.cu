// Rung 3: tensor cores by mma.sync, fed by cp.async and ldmatrix. The product's rung for Ampere.
//
// Idea: a warp multiplies 16 × 8 × 16 at once. Three things keep it busy: cp.async copies four
// stages ahead of the multiplication without passing through registers; a swizzle lets ldmatrix
// read eight rows without bank conflicts; and a warp's 32 × 128 results stay in registers. On
// Hopper mma.sync itself reaches little more than half of what wgmma does.
// Measured (H200, 4096³, bf16): 394.0 TFLOP/s, 0.512 of cuBLASLt in the same run.
#pragma once

#include "../epilogue/plain.cuh"
#include "../gemm_sm80.cuh"

namespace fuseline::gpu::ladder {

template <class T>
using MmaSync = Sm80Config<T, 128>;

}  // namespace fuseline::gpu::ladder
