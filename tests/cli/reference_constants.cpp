#include "tests/cli/reference_constants.h"

#include <gtest/gtest.h>

#include <array>

#include "sim/gpu/gemm_constants.h"
#include "sim/gpu/power.h"

namespace fuseline {
namespace {

struct GemmConstant {
  const char* name;
  double (*value)(const GemmConstants&);
};
constexpr std::array kGemmConstants = {
    GemmConstant{"gemm.tensor_fraction", [](const GemmConstants& c) { return c.tensor_fraction; }},
    GemmConstant{"gemm.sm_fetch_bytes_per_cycle",
                 [](const GemmConstants& c) { return c.sm_fetch_bytes_per_cycle; }},
    GemmConstant{"gemm.l2_fraction", [](const GemmConstants& c) { return c.l2_fraction; }},
    GemmConstant{"gemm.hbm_fraction", [](const GemmConstants& c) { return c.hbm_fraction; }},
    GemmConstant{"gemm.concurrency_exponent",
                 [](const GemmConstants& c) { return c.concurrency_exponent; }},
    GemmConstant{"gemm.overlap_exponent",
                 [](const GemmConstants& c) { return c.overlap_exponent; }},
    GemmConstant{"gemm.epilogue_bytes_per_cycle",
                 [](const GemmConstants& c) { return c.epilogue_bytes_per_cycle; }},
    GemmConstant{"gemm.exposed_epilogue_bytes_per_cycle",
                 [](const GemmConstants& c) { return c.exposed_epilogue_bytes_per_cycle; }},
    GemmConstant{"gemm.reduction_fraction",
                 [](const GemmConstants& c) { return c.reduction_fraction; }},
    GemmConstant{"gemm.packed_fraction", [](const GemmConstants& c) { return c.packed_fraction; }},
    GemmConstant{"gemm.raster_group_tiles",
                 [](const GemmConstants& c) { return c.raster_group_tiles; }},
    GemmConstant{"gemm.unaligned_bytes_per_cycle",
                 [](const GemmConstants& c) { return c.unaligned_bytes_per_cycle; }},
    GemmConstant{"gemm.start_us", [](const GemmConstants& c) { return to_us(c.start); }},
    GemmConstant{"gemm.reduction_us", [](const GemmConstants& c) { return to_us(c.reduction); }},
    GemmConstant{"gemm.cluster_wave_us",
                 [](const GemmConstants& c) { return to_us(c.cluster_wave); }},
};

}  // namespace

double default_of(const std::string& name, const Gpu& gpu) {
  for (const GemmConstant& c : kGemmConstants) {
    if (name == c.name) return c.value(gemm_constants(gpu));
  }
  const PowerModel power = power_model(gpu);
  const double tdp = gpu.tdp.value();
  if (name == "l2.capacity_fraction") {
    return effective_l2_capacity(gpu).as_double() / gpu.l2_capacity.as_double();
  }
  if (name == "power.constant_share") return power.constant.value() / tdp;
  if (name == "power.tensor_share") {
    return power.per_tensor_teraflop.value() * gpu.tensor_bf16.value() * 1e-12 / tdp;
  }
  if (name == "power.hbm_share") {
    return power.per_hbm_gigabyte.value() * gpu.hbm_bandwidth.value() * 1e-9 / tdp;
  }
  if (name == "power.l2_share") {
    return power.per_l2_gigabyte.value() * gpu.l2_bandwidth.value() * 1e-9 / tdp;
  }
  if (name == "power.clock_exponent") return power.clock_exponent;
  if (name == "power.reaction_ms") return to_us(power.reaction) / 1000;
  ADD_FAILURE() << "the reference does not know the default of " << name;
  return 0;
}

}  // namespace fuseline
