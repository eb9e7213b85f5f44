// A GEMM program whose weights are codes, and perhaps its activations too, as CUDA source
// (kernels/gemm_codes.cuh).
#pragma once

#include <string>

#include "cuda/emit/kernel_source.h"

namespace fuseline::cuda {

// What the kernel lacks for this program: "" or a phrase as not_built() gives.
std::string codes_not_built(const Program& program);

// Rows and parts of K by the shape alone: the mainloop has columns of one width.
GemmConfig codes_config(const GemmMainloop& gemm, SmTarget architecture);

GemmKernelSource codes_kernel_source(const Graph& graph, const Program& program,
                                     SmTarget architecture, const std::string& title);

}  // namespace fuseline::cuda
