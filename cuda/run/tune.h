// How far the simulator's choice of tile is from the best that our mainloop has.
#pragma once

#include <functional>
#include <vector>

#include "cuda/run/gpu_tensors.h"
#include "cuda/run/kernel_store.h"
#include "cuda/run/measure.h"
#include "cuda/run/prepare.h"
#include "model/plan.h"

namespace fuseline::cuda {

// Times every GEMM of the plan that runs on our mainloop with every tile that fits it, replays
// alternating between the tiles. `tensors` hold the values of a finished run. `before`: called with
// the name of each kernel.
std::vector<TunedGemm> tune_gemms(const Device& device, KernelStore& store, const Plan& plan,
                                  const Workload& workload, const GpuTensors& tensors,
                                  const Gpu& described, const PrepareOptions& options,
                                  const std::function<void(const std::string&)>& before);

}  // namespace fuseline::cuda
