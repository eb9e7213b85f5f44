// The description of a GPU: every number with its unit and source in scenarios/gpus/*.toml.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline {

enum class Architecture : std::uint8_t { ampere, ada, hopper, blackwell };

// Blocks that were predicted and then measured on a GPU on which nothing was fitted for them.
struct GpuCheck {
  std::string measurements;           // folder in scenarios/measurements
  std::vector<std::string> policies;  // whose blocks of that folder, of all phases
  std::int64_t blocks = 0;
  double mean_error = 0;   // of block times, |predicted / measured - 1|
  double worst_error = 0;  // the largest of them
  std::string source, date;
};

struct Gpu {
  std::string name;
  std::string title;
  Architecture architecture = Architecture::hopper;
  bool calibrated = false;       // constants fitted on this hardware
  std::vector<GpuCheck> checks;  // sim/gpu/standing.h says what they make of it
  std::int64_t sm_count = 0;
  Hertz sm_clock;  // boost
  Hertz sm_clock_base;
  FlopsPerSecond tensor_bf16;  // dense, datasheet, at tensor_clock
  FlopsPerSecond tensor_fp16;
  FlopsPerSecond tensor_fp8;  // zero where absent
  FlopsPerSecond vector_fp32;
  Bytes hbm_capacity;
  BytesPerSecond hbm_bandwidth;            // datasheet
  BytesPerSecond hbm_bandwidth_sustained;  // best a streaming read reaches
  Bytes l2_capacity;
  std::int64_t l2_partitions = 1;
  BytesPerSecond l2_bandwidth;
  Bytes smem_per_sm;
  Bytes smem_per_block_max;
  Bytes registers_per_sm;
  std::int64_t smem_bytes_per_clock = 128;  // per SM
  std::int64_t max_threads_per_sm = 2048;
  Watts tdp;
  Seconds tiny_kernel;  // one empty kernel in a CUDA graph, start to start
  // Fitted constants of the hierarchy model, by name; sim/gpu/calibration.h lists names and
  // defaults.
  std::map<std::string, double> calibration;
  std::map<std::string, std::string> sources;  // field → "value unit (source, date, status)"
  Hertz tensor_clock;  // the clock at which tensor_* are quoted; above or below the boost clock
  std::string compute_capability;    // "9.0"
  std::vector<std::string> aliases;  // other names that load_gpu() takes
};

// The architecture whose tensor-core kernels the GPU runs: Blackwell of compute capability 12 (RTX)
// has Ada's mma.sync and shared memory, not the warp-group MMA of the data-centre parts.
Architecture kernel_architecture(const Gpu& gpu);

// From a name in scenarios/gpus or a TOML path. InputError: unknown name (nearest), missing number,
// wrong unit, value out of range, TOML syntax (file, line, column).
Gpu load_gpu(const std::string& name_or_path);
std::vector<std::string> gpu_names();

}  // namespace fuseline
