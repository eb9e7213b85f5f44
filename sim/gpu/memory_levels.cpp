#include "sim/gpu/memory_levels.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline {

const char* name_of(MemoryScope scope) {
  switch (scope) {
    case MemoryScope::sm:
      return "sm";
    case MemoryScope::die:
      return "die";
    case MemoryScope::package:
      return "package";
  }
  FUSELINE_ASSERT(false, "scope");
}

std::vector<GpuMemory> memory_levels(const Gpu& gpu) {
  const double smem_rate = static_cast<double>(gpu.smem_bytes_per_clock) *
                           static_cast<double>(gpu.sm_count) * gpu.sm_clock.value();
  std::vector<GpuMemory> levels = {
      {"registers", MemoryScope::sm, gpu.sm_count, gpu.registers_per_sm, {}},
      {"shared memory", MemoryScope::sm, gpu.sm_count, gpu.smem_per_sm, BytesPerSecond(smem_rate)},
      {gpu.shared_cache, MemoryScope::package, 1, gpu.l2_capacity, gpu.l2_bandwidth},
      {"device memory", MemoryScope::package, 1, gpu.hbm_capacity, gpu.hbm_bandwidth}};
  for (const GpuMemory& memory : gpu.more_memory) {
    const auto beyond =
        std::find_if(levels.begin(), levels.end(), [&memory](const GpuMemory& level) {
          return level.scope > memory.scope ||
                 (level.scope == MemoryScope::package && memory.scope == MemoryScope::package &&
                  level.capacity > memory.capacity);
        });
    levels.insert(beyond, memory);
  }
  return levels;
}

}  // namespace fuseline
