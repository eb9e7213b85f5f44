// A plan's kernels as launches on the GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/run/launch.h"
#include "cuda/vendor/cublaslt_gemm.h"
#include "cuda/vendor/cudnn_attention.h"
#include "model/gemm_tile.h"
#include "model/instructions/instructions.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {

struct PreparedKernel {
  std::string name;  // of the plan's kernel
  KernelKind kind = KernelKind::pointwise;
  Launches launches{};
  bool library = false;                                     // the vendor's code
  std::optional<GemmTile> tile{};                           // of our own GEMMs
  std::shared_ptr<const BlockInstructions> instructions{};  // of a whole block in one launch
};

struct PrepareOptions {
  CublasLt* library = nullptr;  // for the plan's library GEMMs; null: our own mainloop has them all
  // For attention that it can run as the plan has it; null: ours runs all.
  Cudnn* attention_library = nullptr;
  int threads = 1;  // of the host that compile
  // Launches overlap where they are predicted to gain by it (sim/block/launch_overlap.h).
  bool overlap = false;
  // Takes the place of the simulator's choice of tile for a kernel of this name.
  std::function<std::optional<GemmTile>(const std::string&)> tile{};
};

// What prepare_plan() will compile, without tensors and without compiling: the texts of the plan's
// kernels that are our own.
std::vector<Source> plan_sources(const KernelStore& store, const DeviceInfo& device,
                                 const Plan& plan, const Gpu& described,
                                 const PrepareOptions& options = {});

// In the plan's order. `described` chooses the tiles, the same that a prediction for it has.
// MissingError: a kernel that no code of ours runs, named.
std::vector<PreparedKernel> prepare_plan(const LaunchContext& context, const Gpu& described,
                                         const PrepareOptions& options = {});

}  // namespace fuseline::cuda
