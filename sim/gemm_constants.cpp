#include "sim/gemm_constants.h"

#include <cmath>
#include <string>

#include "model/error.h"

namespace fuseline {
namespace {

// Fitted on one H200 (cuBLAS of CUDA 13.0, 2026-11-20) to 368 library GEMMs whose kernels were
// known by name; start to graph replays of single GEMMs; the raster group to the HBM counters of
// traced kernels; the exposed epilogue to 2 us per extra stream of a 128 × 256 tile.
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
                                .reduction_fraction = 0.19,
                                .packed_fraction = 0.91,
                                .raster_group_tiles = 12};

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
                                .reduction_fraction = 0.19,
                                .packed_fraction = 1.0,
                                .raster_group_tiles = 8};

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
                             .reduction_fraction = 0.19,
                             .packed_fraction = 1.0,
                             .raster_group_tiles = 8};

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

double calibrated(const Gpu& gpu, const std::string& name, double fallback) {
  const auto found = gpu.calibration.find(name);
  if (found == gpu.calibration.end()) return fallback;
  if (!(found->second > 0) || !std::isfinite(found->second)) {
    InputProblem problem;
    problem.file = gpu.name;
    problem.field = "calibration." + name;
    problem.value = std::to_string(found->second);
    problem.message = "a constant of the GEMM model must be positive";
    problem.allowed = "a number above 0";
    throw InputError(problem);
  }
  return found->second;
}

}  // namespace

GemmConstants gemm_constants(const Gpu& gpu) {
  GemmConstants c = defaults(gpu.architecture);
  const auto replace = [&gpu](const char* name, double& value) {
    value = calibrated(gpu, std::string("gemm.") + name, value);
  };
  replace("tensor_fraction", c.tensor_fraction);
  replace("sm_fetch_bytes_per_cycle", c.sm_fetch_bytes_per_cycle);
  replace("l2_fraction", c.l2_fraction);
  replace("hbm_fraction", c.hbm_fraction);
  replace("concurrency_exponent", c.concurrency_exponent);
  replace("overlap_exponent", c.overlap_exponent);
  replace("epilogue_bytes_per_cycle", c.epilogue_bytes_per_cycle);
  replace("exposed_epilogue_bytes_per_cycle", c.exposed_epilogue_bytes_per_cycle);
  replace("reduction_fraction", c.reduction_fraction);
  replace("packed_fraction", c.packed_fraction);
  replace("raster_group_tiles", c.raster_group_tiles);
  double start_us = to_us(c.start);
  double reduction_us = to_us(c.reduction);
  replace("start_us", start_us);
  replace("reduction_us", reduction_us);
  c.start = microseconds(start_us);
  c.reduction = microseconds(reduction_us);
  return c;
}

Bytes effective_l2_capacity(const Gpu& gpu) {
  // 34 MiB of 60 on the H200 (two partitions): the LRU size at which the simulated HBM traffic of
  // 20 traced GEMM kernels is nearest to the counters. One partition has no second copy.
  const double fallback = gpu.l2_partitions > 1 ? 0.567 : 0.9;
  const double fraction = calibrated(gpu, "l2.capacity_fraction", fallback);
  return Bytes(static_cast<std::int64_t>(gpu.l2_capacity.as_double() * fraction));
}

}  // namespace fuseline
