// A plan in the memory of a GPU, ready to run. It is one block, or several layers that take turns
// when the weights of a single one would stay in L2 from one run to the next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/driver/driver.h"
#include "cuda/run/prepare.h"
#include "sim/executor/inputs.h"
#include "sim/executor/memory.h"

namespace fuseline::cuda {

// Layers whose weights and caches are together several times the L2: what one replay leaves there
// is gone when the next begins.
int layers_beyond_l2(const Plan& plan, Bytes l2);

class BlockOnGpu {
 public:
  // All must outlive the object. MissingError: memory (need and free in words), or a kernel that no
  // code of ours runs.
  BlockOnGpu(const Device& device, KernelStore& store, const Plan& plan, const Gpu& described,
             int layers, const PrepareOptions& options);

  // Given tensors of every layer; all others become NaNs, so that what a kernel forgets is seen.
  void give(const executor::Inputs& inputs);
  [[nodiscard]] int layers() const { return static_cast<int>(tensors_.size()); }
  [[nodiscard]] Bytes bytes() const;  // of its tensors
  [[nodiscard]] const GpuTensors& tensors(int layer = 0) const;
  // Of one layer.
  [[nodiscard]] std::vector<PreparedKernel>& kernels(int layer = 0);

  // All kernels of one layer. InternalError at the next synchronize() when one faulted.
  void launch(Stream& stream, int layer);
  // Whether a scan overwrites the state that it begins with: then a run does not repeat the one
  // before, unless the inputs are given again.
  [[nodiscard]] bool overwrites_states() const;
  // The first layer, waiting after every kernel, so that a fault names its kernel.
  void run_step_by_step(Stream& stream);
  // What the block gives to others, after a run of a layer: outputs and caches.
  [[nodiscard]] std::vector<executor::Storage> outputs(int layer = 0) const;
  // All of the plan's tensors after a run of a layer. `inputs`: as given.
  [[nodiscard]] std::unique_ptr<executor::Memory> result(const executor::Inputs& inputs,
                                                         int layer = 0) const;

 private:
  const Plan& plan_;
  std::vector<std::unique_ptr<GpuTensors>> tensors_;  // by layer
  std::vector<std::vector<PreparedKernel>> kernels_;  // by layer
};

}  // namespace fuseline::cuda
