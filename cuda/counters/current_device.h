// Which GPU the context that is current in this thread runs on: profilers and NVML count GPUs in
// ways of their own.
#pragma once

#include <optional>
#include <string>

namespace fuseline::cuda {

struct CurrentDevice {
  int ordinal = 0;          // as the driver counts
  std::string pci_bus;      // "0000:3b:00.0"
  void* context = nullptr;  // CUcontext
};
// Empty: no driver, or no context.
std::optional<CurrentDevice> current_device();

}  // namespace fuseline::cuda
