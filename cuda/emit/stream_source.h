// A program without a matrix product as the CUDA source of one kernel (the contract:
// cuda/kernels/stream/README.md). One primitive becomes one call.
#pragma once

#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/emit/stream_fields.h"
#include "cuda/emit/stream_shape.h"

namespace fuseline::cuda {

struct StreamKernelSource {
  Source source;
  std::string function;  // "rows_sum_squares_rsqrt_mul": what it computes, not for which tensor
  StreamShape shape;
  std::vector<StreamField> fields;  // of its Params, in order
};

// `title`, the program's text and which parameter is which tensor become the source's first
// comment. What follows depends on sizes only where they change the code, so that equal programs of
// different tensors and models are one kernel. InternalError: the program is neither a stream nor
// rows, or no mainloop offers its primitives together (named).
StreamKernelSource stream_kernel_source(const Graph& graph, const Program& program,
                                        const std::string& title);

}  // namespace fuseline::cuda
