// A GEMM program ready to launch: its function, its grid and the bytes of its parameters.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/emit/kernel_source.h"
#include "cuda/run/gpu_tensors.h"
#include "cuda/run/kernel_store.h"

namespace fuseline::cuda {

// A kernel of one struct parameter, with its module.
struct PreparedLaunch {
  Module module;
  Function function;
  LaunchShape shape;
  std::vector<std::byte> arguments;  // of the struct; copied at the launch

  void launch(Stream& stream) const;
};

// InternalError: an operand's address or rows are not multiples of 16 bytes where the copy engine
// moves it, or the program multiplies in batches.
PreparedLaunch prepare_gemm(const Device& device, KernelStore& store,
                            const GemmKernelSource& kernel, const Program& program,
                            const GpuTensors& tensors, std::int64_t sequences);

}  // namespace fuseline::cuda
