// How far the simulator's choice of tile is from the best that our mainloop has.
#pragma once

#include <functional>
#include <vector>

#include "cuda/run/block_on_gpu.h"
#include "cuda/run/kernel_store.h"
#include "cuda/run/measure.h"
#include "cuda/run/prepare.h"
#include "model/plan.h"

namespace fuseline::cuda {

// Times every GEMM of the plan that runs on our mainloop with every tile that fits it, replays
// alternating between the tiles, each behind the other kernels of the `block`, which has run once.
// `before`: called with the name of each kernel.
std::vector<TunedGemm> tune_gemms(const Device& device, KernelStore& store, const Plan& plan,
                                  BlockOnGpu& block, const Gpu& described,
                                  const PrepareOptions& options,
                                  const std::function<void(const std::string&)>& before);

}  // namespace fuseline::cuda
