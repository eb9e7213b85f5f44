// A scan with its body as the CUDA source of one kernel (cuda/kernels/scan/walk.cuh). The body is
// written as that of a stream.
#pragma once

#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/emit/scan_shape.h"
#include "cuda/emit/stream_fields.h"

namespace fuseline::cuda {

struct ScanKernelSource {
  Source source;
  std::string function;  // the extern "C" kernel; FUNCTION_shared_bytes is a constant beside it
  ScanLayout layout;
  std::vector<StreamField> fields;  // of its Params, in order: the mainloop's, then the body's
};

// `title`, the program's text and which parameter is which tensor become the source's first
// comment. InternalError: the program is no scan, or not_built() names what it has.
ScanKernelSource scan_kernel_source(const Graph& graph, const Program& program,
                                    const std::string& title);

}  // namespace fuseline::cuda
