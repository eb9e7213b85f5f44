#include "sim/gpu/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "sim/gpu/gemm_constants.h"
#include "sim/gpu/power.h"

namespace fuseline {
namespace {

// Hopper: fitted on one H200 (PyTorch 2.11, CUDA 13.0, 2026-11-20; kernel traces and graph
// replays). Attention on Ampere and Ada: fitted to published median latencies on an A100 SXM and an
// L40S (aiconfigurator tables, Apache-2.0). Everything else on architectures other than Hopper is
// Hopper's value.
constexpr CalibrationConstant kConstants[] = {
    // The walk of a decode kernel (this, the waiting, its start and the exponent of their overlap):
    // fitted to 51 decode shapes of three models on an H200 (4.2 % mean error), checked on 85 of
    // five
    // others (6.0 %; h200-pytorch-wide/attention.csv).
    {"attention.block_bytes_per_cycle",
     "B/clock",
     "keys and values that one thread block streams",
     {48, 48, 48, 48},
     4,
     256},
    {"attention.block_cycles_per_key",
     "clocks",
     "waiting of one thread block for a key, beside streaming it",
     {8, 8, 8, 8},
     0,
     100},
    {"attention.combine_us", "us", "merging the splits of decode attention", {2, 2, 2, 2}, 0, 20},
    {"attention.exp_cycles",
     "clocks/score",
     "softmax of one score on one SM",
     {0.166, 0.23, 0.0814, 0.0814},
     0.01,
     1},
    // Both fitted to cuDNN forward + backward less forward, 32 heads of 128 and 25 of 64 columns,
    // 8,192 tokens; 64 and 32 heads at 2,048 and 8,192 tokens checked.
    {"attention.gradient_exps",
     "1",
     "softmax work of attention's gradient over its forward's",
     {1.7, 1.7, 1.7, 1.7},
     0.5,
     10},
    {"attention.gradient_products",
     "1",
     "products of attention's gradient over its forward's",
     {3.8, 3.8, 3.8, 3.8},
     1,
     10},
    {"attention.hbm_fraction",
     "1",
     "of the sustained HBM rate that decode attention reaches",
     {0.98, 0.98, 0.98, 0.98},
     0.3,
     1.2},
    {"attention.item_cycles_per_width",
     "clocks",
     "per query tile and head column: Q in, result out",
     {2.4, 2.4, 32, 32},
     0,
     300},
    {"attention.product_exposed",
     "1",
     "share of the products' time that softmax does not hide",
     {1, 1.5, 0.88, 0.88},
     0.1,
     3},
    {"attention.split_start_us",
     "us",
     "first loads and last stores of a decode attention kernel",
     {2, 2, 2, 2},
     0,
     20},
    {"attention.start_us",
     "us",
     "first loads and last stores of a prefill attention kernel",
     {2.8, 2.8, 2.8, 2.8},
     0,
     30},
    {"launch.gap_us",
     "us",
     "a kernel after a different one, beyond a chain of equal empty kernels",
     {0.2, 0.2, 0.2, 0.2},
     0,
     5},
    {"stream.concat_instructions",
     "instructions/element",
     "framework concatenation",
     {134, 134, 134, 134},
     10,
     500},
    {"stream.gelu_instructions",
     "instructions/element",
     "tanh and its polynomial",
     {30, 30, 30, 30},
     1,
     200},
    {"stream.generated_norm_instructions",
     "instructions/element",
     "compiler-generated Welford update",
     {110, 110, 110, 110},
     1,
     500},
    {"stream.hbm_fraction",
     "1",
     "of the sustained HBM rate that mixed reads and writes reach",
     {0.955, 0.955, 0.955, 0.955},
     0.5,
     1.1},
    {"stream.l2_fraction",
     "1",
     "of the L2 rate that streams reach",
     {1.11, 1.11, 1.11, 1.11},
     0.2,
     2},
    {"stream.layer_norm_instructions",
     "instructions/element",
     "Welford update of mean and variance",
     {43, 43, 43, 43},
     1,
     300},
    {"stream.ramp_us",
     "us",
     "from the first miss to a full pipe of them, and back",
     {1, 1, 1, 1},
     0,
     5},
    {"stream.reduce_latency_us",
     "us",
     "framework reduction of resident rows",
     {6.4, 6.4, 6.4, 6.4},
     0,
     50},
    {"stream.resident_row_instructions",
     "instructions/element",
     "sums or maximum, exponential and scale of a row in registers, vectorised",
     {24, 24, 24, 24},
     1,
     300},
    {"stream.row_instructions",
     "instructions/element",
     "sum of squares and scale in a framework's row kernel",
     {33, 33, 33, 33},
     1,
     300},
    {"stream.row_step_us",
     "us",
     "one dependent step of a row kernel: load, shuffle, barrier",
     {0.35, 0.35, 0.35, 0.35},
     0,
     3},
    {"stream.softmax_instructions",
     "instructions/element",
     "maximum, exponential, sum, scale",
     {95, 95, 95, 95},
     1,
     500},
    {"stream.strided_instructions",
     "instructions/element",
     "framework kernel with index arithmetic",
     {86, 86, 86, 86},
     10,
     300},
    {"stream.strided_latency_us",
     "us",
     "one element's path through a generic framework kernel",
     {0.85, 0.85, 0.85, 0.85},
     0,
     5},
    {"sync.barrier_us",
     "us",
     "one grid barrier of a persistent kernel",
     {1.6, 1.6, 1.6, 1.6},
     0,
     10},
};

const CalibrationConstant* find(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kConstants), std::end(kConstants),
                   [name](const CalibrationConstant& constant) { return name == constant.name; });
  return found == std::end(kConstants) ? nullptr : found;
}

}  // namespace

std::span<const CalibrationConstant> calibration_constants() { return kConstants; }

std::vector<ConstantRange> constant_ranges() {
  std::vector<ConstantRange> all = gemm_constant_ranges();
  for (ConstantRange& range : power_constant_ranges()) all.push_back(std::move(range));
  for (const CalibrationConstant& c : kConstants) all.push_back({c.name, c.lower, c.upper});
  return all;
}

double own_constant(const Gpu& gpu, std::span<const ConstantRange> ranges, std::string_view name,
                    double fallback) {
  const auto range = std::find_if(ranges.begin(), ranges.end(),
                                  [name](const ConstantRange& r) { return r.name == name; });
  FUSELINE_ASSERT(range != ranges.end(), name);
  const auto own = gpu.calibration.find(std::string(name));
  if (own == gpu.calibration.end()) return fallback;
  if (own->second >= range->least && own->second <= range->most) return own->second;
  throw InputError(
      {.file = gpu.name,
       .field = "calibration." + range->name,
       .value = fmt::format("{:g}", own->second),
       .message = "is outside the range of this constant",
       .allowed = fmt::format("a number from {:g} to {:g}", range->least, range->most)});
}

double calibrated(const Gpu& gpu, std::string_view name) {
  const CalibrationConstant* const constant = find(name);
  FUSELINE_ASSERT(constant != nullptr, name);
  const ConstantRange range{constant->name, constant->lower, constant->upper};
  return own_constant(gpu, std::span(&range, 1), name,
                      constant->defaults[static_cast<std::size_t>(kernel_architecture(gpu))]);
}

}  // namespace fuseline
