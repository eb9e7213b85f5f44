#include "sim/gpu/gemm_constants.h"

#include <span>

namespace fuseline {
namespace {

// Fitted on one H200 (cuBLAS of CUDA 13.0, 2026-11-20) to 368 library GEMMs whose kernels were
// known by name; start to graph replays of single GEMMs; the wave of clusters along K to 40 of our
// own GEMMs of one token (LLaMA-2-7B, GPT-2 XL); the raster group to the HBM counters of traced
// kernels; the exposed epilogue to 2 us per extra stream of a 128 × 256 tile; unaligned rows to
// GPT-2's LM head (50,257 columns: 3,400 us at 2,048 rows where an aligned one takes 430).
constexpr GemmConstants kHopper{.tensor_fraction = 0.86,
                                .sm_fetch_bytes_per_cycle = 86,
                                .l2_fraction = 1.3,
                                .hbm_fraction = 0.94,
                                .concurrency_exponent = 0.15,
                                .overlap_exponent = 4.2,
                                .epilogue_bytes_per_cycle = 45,
                                .exposed_epilogue_bytes_per_cycle = 17,
                                .start = microseconds(2.3),
                                .reduction = microseconds(0.56),
                                .cluster_wave = microseconds(1.7),
                                .reduction_fraction = 0.19,
                                .packed_fraction = 0.91,
                                .raster_group_tiles = 12,
                                .unaligned_bytes_per_cycle = 3.8};

// Fitted to published median latencies of 606 GEMMs on an A100 SXM (aiconfigurator tables,
// Apache-2.0; the spread between the frameworks measured there is 10 to 20 %). Raster group:
// assumed.
constexpr GemmConstants kAmpere{.tensor_fraction = 0.85,
                                .sm_fetch_bytes_per_cycle = 34,
                                .l2_fraction = 1.0,
                                .hbm_fraction = 0.81,
                                .concurrency_exponent = 0.13,
                                .overlap_exponent = 7.8,
                                .epilogue_bytes_per_cycle = 13,
                                .exposed_epilogue_bytes_per_cycle = 10,
                                .start = microseconds(1.76),
                                .reduction = microseconds(0.69),
                                .cluster_wave = microseconds(1.7),
                                .reduction_fraction = 0.19,
                                .packed_fraction = 1.0,
                                .raster_group_tiles = 8,
                                .unaligned_bytes_per_cycle = 3.8};

// Fitted to the same source's 608 latencies on an L40S, whose tensor cores are power-limited there.
constexpr GemmConstants kAda{.tensor_fraction = 0.64,
                             .sm_fetch_bytes_per_cycle = 17.5,
                             .l2_fraction = 1.0,
                             .hbm_fraction = 0.87,
                             .concurrency_exponent = 0.08,
                             .overlap_exponent = 6.2,
                             .epilogue_bytes_per_cycle = 9.7,
                             .exposed_epilogue_bytes_per_cycle = 9.7,
                             .start = microseconds(0.83),
                             .reduction = microseconds(0.45),
                             .cluster_wave = microseconds(1.7),
                             .reduction_fraction = 0.19,
                             .packed_fraction = 1.0,
                             .raster_group_tiles = 8,
                             .unaligned_bytes_per_cycle = 3.8};

const GemmConstants& defaults(Architecture architecture) {
  switch (architecture) {
    case Architecture::ampere:
      return kAmpere;
    case Architecture::ada:
      return kAda;
    case Architecture::hopper:
    case Architecture::blackwell:
      break;  // Blackwell: not measured, Hopper's fractions
  }
  return kHopper;
}

// Ranges as wide as any GPU could need: beyond them a time is no longer finite or positive.
struct Fraction {
  const char* name;
  double GemmConstants::*value;
  double least, most;
};
constexpr Fraction kFractions[] = {
    {"gemm.tensor_fraction", &GemmConstants::tensor_fraction, 0.05, 1.2},
    {"gemm.sm_fetch_bytes_per_cycle", &GemmConstants::sm_fetch_bytes_per_cycle, 1, 1000},
    {"gemm.l2_fraction", &GemmConstants::l2_fraction, 0.1, 3},
    {"gemm.hbm_fraction", &GemmConstants::hbm_fraction, 0.1, 1.2},
    {"gemm.concurrency_exponent", &GemmConstants::concurrency_exponent, 0.001, 2},
    {"gemm.overlap_exponent", &GemmConstants::overlap_exponent, 1, 100},
    {"gemm.epilogue_bytes_per_cycle", &GemmConstants::epilogue_bytes_per_cycle, 0.5, 1000},
    {"gemm.exposed_epilogue_bytes_per_cycle", &GemmConstants::exposed_epilogue_bytes_per_cycle, 0.5,
     1000},
    {"gemm.reduction_fraction", &GemmConstants::reduction_fraction, 0.01, 2},
    {"gemm.packed_fraction", &GemmConstants::packed_fraction, 0.1, 1},
    {"gemm.raster_group_tiles", &GemmConstants::raster_group_tiles, 1, 1024},
    {"gemm.unaligned_bytes_per_cycle", &GemmConstants::unaligned_bytes_per_cycle, 0.1, 1000},
};
struct Time {
  const char* name;
  Seconds GemmConstants::*value;
};
constexpr Time kTimes[] = {{"gemm.start_us", &GemmConstants::start},
                           {"gemm.reduction_us", &GemmConstants::reduction},
                           {"gemm.cluster_wave_us", &GemmConstants::cluster_wave}};
constexpr double kLeastMicroseconds = 0.001, kMostMicroseconds = 100;
const ConstantRange kCapacity{"l2.capacity_fraction", 0.01, 1};

}  // namespace

GemmConstants gemm_constants(const Gpu& gpu) {
  GemmConstants c = defaults(kernel_architecture(gpu));
  const std::vector<ConstantRange> ranges = gemm_constant_ranges();
  for (const Fraction& f : kFractions) {
    c.*f.value = own_constant(gpu, ranges, f.name, c.*f.value);
  }
  for (const Time& t : kTimes) {
    c.*t.value = microseconds(own_constant(gpu, ranges, t.name, to_us(c.*t.value)));
  }
  return c;
}

std::vector<ConstantRange> gemm_constant_ranges() {
  std::vector<ConstantRange> ranges = {kCapacity};
  for (const Fraction& f : kFractions) ranges.push_back({f.name, f.least, f.most});
  for (const Time& t : kTimes) ranges.push_back({t.name, kLeastMicroseconds, kMostMicroseconds});
  return ranges;
}

Bytes effective_l2_capacity(const Gpu& gpu) {
  // 34 MiB of 60 on the H200 (two partitions): the LRU size at which the simulated HBM traffic of
  // 20 traced GEMM kernels is nearest to the counters. One partition has no second copy.
  const double fallback = gpu.l2_partitions > 1 ? 0.567 : 0.9;
  const double fraction = own_constant(gpu, std::span(&kCapacity, 1), kCapacity.name, fallback);
  return Bytes(static_cast<std::int64_t>(gpu.l2_capacity.as_double() * fraction));
}

}  // namespace fuseline
