// The description of a GPU: every number with its unit and source in scenarios/gpus/*.toml.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "sim/gpu/architecture.h"
#include "sim/gpu/constants.h"

namespace fuseline {

// Blocks that were predicted and then measured on a GPU on which nothing was fitted for them.
struct GpuCheck {
  std::string measurements;           // folder in scenarios/measurements
  std::vector<std::string> policies;  // whose blocks of that folder, of all phases
  // Policies whose blocks of that folder are no check, because a mechanism was described from them.
  std::vector<std::string> looked_at;
  std::int64_t blocks = 0;
  double mean_error = 0;   // of block times, |predicted / measured - 1|
  double worst_error = 0;  // the largest of them
  std::string source, date;
};

// What shares one piece of a memory.
enum class MemoryScope : std::uint8_t { sm, die, package };

// One level of the memory, `instances` equal pieces of it on the whole GPU.
struct GpuMemory {
  std::string name;
  MemoryScope scope = MemoryScope::package;
  std::int64_t instances = 1;
  Bytes capacity;            // of one piece
  BytesPerSecond bandwidth;  // of all pieces together; zero where nobody says
};

struct Gpu {
  std::string name;
  std::string title;
  std::shared_ptr<const Architecture> architecture;
  bool calibrated = false;       // constants fitted on this hardware
  std::vector<GpuCheck> checks;  // sim/gpu/standing.h says what they make of it
  std::int64_t sm_count = 0;
  Hertz sm_clock;  // boost
  Hertz sm_clock_base;
  FlopsPerSecond tensor_bf16;  // dense, datasheet, at tensor_clock
  FlopsPerSecond tensor_fp16;
  FlopsPerSecond tensor_fp8;   // zero where absent
  FlopsPerSecond tensor_int8;  // zero where absent, or where the file does not say
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
  // The architecture's, but for what the GPU's file replaces in [calibration].
  Constants constants;
  // Levels that the fields above do not hold, from [[memory]]; sim/gpu/memory_levels.h lists all.
  std::vector<GpuMemory> more_memory;
  std::string shared_cache = "L2";             // the name of what the l2_ fields describe
  std::map<std::string, std::string> sources;  // field → "value unit (source, date, status)"
  Hertz tensor_clock;  // the clock at which tensor_* are quoted; above or below the boost clock
  std::string compute_capability;    // "9.0"
  std::vector<std::string> aliases;  // other names that load_gpu() takes
  // What if some of its numbers were others: the GPU that libraries and plans still choose for.
  std::shared_ptr<const Gpu> chosen_for;
};

// Whether kernels may use it; false of a GPU without an architecture.
bool has_feature(const Gpu& gpu, Feature feature);

// The capacity of an LRU cache with the measured traffic of GEMMs: where the L2 has two partitions,
// each keeps its own copy of lines that both use.
Bytes effective_l2_capacity(const Gpu& gpu);

// A constant by name, in its unit. InternalError: no such constant.
double constant_of(const Gpu& gpu, std::string_view name);
// InputError (the GPU's name as file, field "calibration.NAME"): a value out of the range that the
// architecture's file gives. InternalError: no such constant.
void set_constant(Gpu& gpu, std::string_view name, double value);

// The architecture, with its constants as they are before a GPU's file replaces some. After
// l2_partitions, on which the L2's constants depend.
void set_architecture(Gpu& gpu, std::shared_ptr<const Architecture> architecture);

// From a name in scenarios/gpus or a TOML path. InputError: unknown name (nearest), missing number,
// wrong unit, value out of range, TOML syntax (file, line, column).
Gpu load_gpu(const std::string& name_or_path);
std::vector<std::string> gpu_names();

}  // namespace fuseline
