// Where each number of a GPU comes from, for the details strip.
#pragma once

#include <string>
#include <vector>

#include "sim/gpu/gpu.h"

namespace fuseline::gui {

struct HardwareConstant {
  std::string name;    // "HBM bandwidth"; fitted constants keep their key, "gemm.start_us"
  std::string key;     // in the GPU's file
  std::string value;   // "4800"
  std::string unit;    // "GB/s"
  std::string source;  // document or measurement
  std::string date;
  std::string status;  // datasheet, microbenchmark, derived, fitted
};

// As the GPU's file has them, without "what if" factors; fitted constants last.
std::vector<HardwareConstant> hardware_constants(const Gpu& gpu);

// "HBM bandwidth 4800 GB/s: NVIDIA H200 Tensor Core GPU Datasheet, 2023-11 (datasheet)"
std::string details_text(const HardwareConstant& constant);

}  // namespace fuseline::gui
