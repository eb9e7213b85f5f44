// One kernel of a plan on the GPU against the executor's result of the same kernel.
#pragma once

#include <string>
#include <vector>

#include "cuda/run/launch.h"
#include "sim/executor/execute.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline::cuda {

struct StoredTensorError {
  std::string tensor;
  double relative_l2 = 0;  // ‖gpu - executor‖ / ‖executor‖ over the stored columns; NaN counts as 1
  bool finite = true;
};

// Uploads what the program reads from the executor's memory, makes NaNs of what it stores, runs the
// launches and compares. `memory`: after the plan, so that no other kernel may store the same
// elements.
std::vector<StoredTensorError> check_launches(const LaunchContext& context, const Program& program,
                                              const Launches& launches, GpuTensors& tensors,
                                              const executor::Memory& memory);

// A GEMM or attention program on the kernels of the context's store; `tile` for GEMMs.
std::vector<StoredTensorError> check_gemm(const LaunchContext& context, const Program& program,
                                          const GemmTile& tile, GpuTensors& tensors,
                                          const executor::Memory& memory);
std::vector<StoredTensorError> check_attention(const LaunchContext& context, const Program& program,
                                               GpuTensors& tensors, const executor::Memory& memory);

}  // namespace fuseline::cuda
