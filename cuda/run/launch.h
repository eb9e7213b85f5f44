// What one launch of a plan becomes on the GPU: something that can be put on a stream again and
// again.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver/driver.h"
#include "cuda/run/gpu_tensors.h"
#include "cuda/run/kernel_store.h"
#include "model/plan.h"

namespace fuseline::cuda {

class Launch {
 public:
  explicit Launch(std::string code) : code_(std::move(code)) {}
  virtual ~Launch() = default;
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  virtual void launch(Stream& stream) = 0;
  // From now on it may begin before what is launched before it has ended, if its code can wait
  // (kernels/launch_order.cuh).
  virtual void let_overlap() {}
  // Name of the code that runs, as a profiler lists it: a kernel's, or the library's.
  [[nodiscard]] const std::string& code() const { return code_; }

 private:
  std::string code_;
};

// A program may take several launches: the two passes of attention's gradient.
using Launches = std::vector<std::unique_ptr<Launch>>;

// A kernel of ours, with its parameters and the memory that it works in.
class KernelLaunch final : public Launch {
 public:
  KernelLaunch(Function function, const LaunchShape& shape,
               std::vector<std::vector<std::byte>> parameters,
               std::vector<DeviceBuffer> workspaces = {});
  void launch(Stream& stream) override;
  void let_overlap() override { overlaps_ = !shape_.in_order; }
  [[nodiscard]] const LaunchShape& shape() const { return shape_; }
  [[nodiscard]] const Function& function() const { return function_; }
  [[nodiscard]] const std::vector<std::vector<std::byte>>& parameters() const {
    return parameters_;
  }
  [[nodiscard]] const std::vector<DeviceBuffer>& workspaces() const { return workspaces_; }

 private:
  Function function_;
  LaunchShape shape_;
  std::vector<std::vector<std::byte>> parameters_;  // in order; the driver copies them at a launch
  std::vector<DeviceBuffer> workspaces_;
  bool overlaps_ = false;
};

// In order, each as the kernel's code declares it.
using KernelParameters = std::vector<std::vector<std::byte>>;

// One more launch of a kernel behind the others. It keeps the workspaces, which its parameters
// point to.
void add_launch(Launches& launches, Function function, const LaunchShape& shape,
                KernelParameters parameters, std::vector<DeviceBuffer> workspaces = {});
// That launch alone.
Launches one_launch(Function function, const LaunchShape& shape, KernelParameters parameters,
                    std::vector<DeviceBuffer> workspaces = {});

// What preparing a launch of a plan's program needs. All of it must outlive the launch.
struct LaunchContext {
  const Device& device;
  KernelStore& store;
  const Plan& plan;
  const GpuTensors& tensors;
};

}  // namespace fuseline::cuda
