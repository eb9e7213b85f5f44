// One kernel of a plan on the GPU against the executor's result of the same kernel.
#pragma once

#include <string>
#include <vector>

#include "cuda/run/gpu_tensors.h"
#include "cuda/run/kernel_store.h"
#include "sim/executor/execute.h"
#include "sim/gemm_problem.h"

namespace fuseline::cuda {

struct StoredTensorError {
  std::string tensor;
  double relative_l2 = 0;  // ‖gpu - executor‖ / ‖executor‖ over the stored columns; NaN counts as 1
  bool finite = true;
};

// Uploads what the GEMM program reads from the executor's memory, poisons what it stores, runs it
// and compares. The memory must hold the values before the kernel where the kernel updates in
// place.
std::vector<StoredTensorError> check_gemm(const Device& device, KernelStore& store,
                                          const Plan& plan, const Program& program,
                                          const GemmTile& tile, GpuTensors& tensors,
                                          const executor::Memory& memory, std::int64_t sequences);

}  // namespace fuseline::cuda
