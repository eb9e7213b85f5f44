// A scan with its body as the CUDA source of one kernel: in chunks on the tensor cores
// (cuda/kernels/scan/chunks.cuh), or token by token (walk.cuh). The body is written as that of a
// stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/emit/scan_shape.h"
#include "cuda/emit/stream_fields.h"
#include "sim/kernels/scan_gradient_shape.h"

namespace fuseline::cuda {

struct ScanKernelSource {
  Source source;
  std::string function;  // the extern "C" kernel; FUNCTION_shared_bytes is a constant beside it
  std::int64_t threads = 0, blocks = 0;  // of a block, and of the launch
  std::vector<StreamField> fields;       // of its Params, in order: the mainloop's, then the body's
  // Of a gradient: a second kernel adds up what thread blocks left in memory. It is called
  // FUNCTION_sums and takes the same parameters.
  std::optional<ScanGradientLayout> gradient{};
};

// Threads of the kernel that adds up.
constexpr std::int64_t scan_sum_threads = 256;

// `title`, the program's text and which parameter is which tensor become the source's first
// comment. `shared_bytes`: what a thread block may have, `multiprocessors`: of the GPU.
// InternalError: the program is no scan, or not_built() names what it has.
ScanKernelSource scan_kernel_source(const Graph& graph, const Program& program,
                                    const std::string& title, std::int64_t shared_bytes,
                                    std::int64_t multiprocessors);

}  // namespace fuseline::cuda
