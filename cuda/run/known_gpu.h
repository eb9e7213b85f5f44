// Which of the described GPUs is the one at hand.
#pragma once

#include <string>
#include <vector>

#include "cuda/driver/driver.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {

// The GPU of this machine. MissingError as Device.
DeviceInfo device_here();

// Of the descriptions with its compute capability and number of SMs, the one whose title has the
// device's name, else the one whose memory is nearest. InputError: none has them (--gpu names one).
Gpu known_gpu(const DeviceInfo& device, const std::vector<Gpu>& known);
Gpu known_gpu(const DeviceInfo& device);  // among those in scenarios/gpus

// Why a description that was named does not fit the device: the shipped one of another card does,
// or none with as many SMs. Empty: it fits, or nothing tells.
std::string other_card(const Gpu& named, const DeviceInfo& device, const std::vector<Gpu>& known);

}  // namespace fuseline::cuda
