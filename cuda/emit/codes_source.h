// A GEMM program whose weights are codes, and perhaps its activations too, as CUDA source
// (kernels/gemm_codes.cuh, kernels/sm90/codes_columns.cuh).
#pragma once

#include <string>

#include "cuda/emit/kernel_source.h"

namespace fuseline::cuda {

// What the kernel lacks for this program: "" or a phrase as not_built() gives.
std::string codes_not_built(const Program& program);

// Whether Hopper's mainloop multiplies the codes of both operands as they are, in such a tile.
bool multiplies_codes(const GemmMainloop& gemm, const GemmTile& tile, SmTarget architecture);
// "WeightCodes<...>", the type of kernels/codes.cuh that says how the weight is stored.
std::string weight_codes_text(const StoredWeight& weight);

// Rows and parts of K by the shape alone, and whether Hopper's kernel for few rows has the product
// (sim/kernels/codes_columns.h). Of `tile` it is only looked at whether it is another kernel's that
// dequantises: then that one is taken.
GemmConfig codes_config(const GemmMainloop& gemm, const EpilogueNeeds& needs, const GemmTile& tile,
                        SmTarget architecture);

GemmKernelSource codes_kernel_source(const Graph& graph, const Program& program,
                                     const GemmTile& tile, SmTarget architecture,
                                     const std::string& title);

}  // namespace fuseline::cuda
