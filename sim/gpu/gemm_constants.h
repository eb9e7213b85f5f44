// Fitted constants of the GEMM model, per architecture, as fractions of the GPU's own numbers where
// possible, so that they carry over to GPUs that were never measured.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/gpu/calibration.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

struct GemmConstants {
  double tensor_fraction;           // of the datasheet tensor rate, in the steady mainloop
  double sm_fetch_bytes_per_cycle;  // per SM: operand panels from L2 into shared memory
  double l2_fraction;   // of Gpu::l2_bandwidth, which plain loads reach; bulk copies reach more
  double hbm_fraction;  // of Gpu::hbm_bandwidth_sustained
  double concurrency_exponent;  // HBM rate ∝ (SMs with work / SMs)^this
  double overlap_exponent;  // p-norm over the parts of a wave: large = perfect overlap, 1 = none
  double epilogue_bytes_per_cycle;  // per SM: library epilogues, mostly hidden by the next tile
  double exposed_epilogue_bytes_per_cycle;  // per SM: epilogue programs while no MMA runs
  Seconds start;              // pipeline fill and drain of one kernel, beyond Gpu::tiny_kernel
  Seconds reduction;          // of a split-K reduction kernel, beyond Gpu::tiny_kernel
  Seconds cluster_wave;       // start and end of clusters along K, which each wave pays again
  double reduction_fraction;  // of Gpu::l2_bandwidth, in that kernel
  double packed_fraction;     // of the SMs that clusters of four or more blocks can fill
  double raster_group_tiles;  // tiles per raster group
  double unaligned_bytes_per_cycle;  // per SM: fetch rate where rows are no multiple of 16 bytes
};

// Defaults of the architecture; Gpu::calibration may replace each as "gemm.<field>" (times in
// microseconds: "gemm.start_us"). InputError: a constant out of its range.
GemmConstants gemm_constants(const Gpu& gpu);

// The names a [calibration] section may use for them, "l2.capacity_fraction" included.
std::vector<ConstantRange> gemm_constant_ranges();

// The LRU capacity that reproduces the measured traffic of GEMMs: where the L2 has two partitions,
// each keeps its own copy of lines that both use. Replaced by "l2.capacity_fraction".
Bytes effective_l2_capacity(const Gpu& gpu);

}  // namespace fuseline
