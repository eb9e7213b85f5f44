// Tiles and raster order of a phase, as the simulator chose them for a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/program_streams.h"
#include "sim/memory/traffic.h"

namespace fuseline::executor {

struct PhaseSchedule {
  TileShape tile;
  GemmSchedule gemm;          // GEMM programs: the clusters' units, in the order they are taken
  std::int64_t launches = 1;  // GEMM: of a batch that the library takes in several
  std::int64_t splits = 1;  // GEMM: parts of K, joined by a second launch; attention: parts of the
                            // keys, joined by a second launch
};

PhaseSchedule schedule_phase(const Kernel& kernel, const Program& phase,
                             const AddressMap& addresses, const Gpu& gpu);

// What the kernel's launch leaves behind: itself, and the launches that join splits. Phases of a
// persistent kernel share one.
std::int64_t launches_of(const Kernel& kernel, const std::vector<PhaseSchedule>& phases);

}  // namespace fuseline::executor
