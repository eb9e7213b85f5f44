#include "sim/gpu/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"

namespace fuseline {

namespace {

const char* name_of_factor(std::string_view key) {
  if (key == "hbm_bandwidth") return "HBM bandwidth";
  if (key == "l2_bandwidth") return "L2 bandwidth";
  if (key == "l2_capacity") return "L2 capacity";
  if (key == "sm_count") return "SMs";
  return "SM clock";
}

void check(const WhatIf& what_if) {
  for (const WhatIfField& field : kWhatIfFields) {
    const double factor = what_if.*field.factor;
    if (factor >= kLeastFactor && factor <= kMostFactor) continue;  // false for NaN
    throw InputError({.field = std::string("what_if.") + field.key,
                      .value = fmt::format("{}", factor),
                      .message = "is out of range",
                      .allowed = fmt::format("a number from {} to {}", kLeastFactor, kMostFactor)});
  }
}

}  // namespace

std::string describe(const WhatIf& what_if) {
  std::string text;
  for (const WhatIfField& field : kWhatIfFields) {
    const double factor = what_if.*field.factor;
    if (factor == 1) continue;
    text +=
        fmt::format("{}{} × {:.3g}", text.empty() ? "" : ", ", name_of_factor(field.key), factor);
  }
  return text;
}

Gpu with_what_if(Gpu gpu, const WhatIf& what_if) {
  check(what_if);
  if (what_if.is_neutral()) return gpu;
  // Another number of SMs asks for other tiles. For the rest a library chooses as it does today.
  if (!what_if.is_only_sm_count()) {
    const Gpu& known = gpu.chosen_for ? *gpu.chosen_for : gpu;
    gpu.chosen_for =
        std::make_shared<const Gpu>(with_what_if(known, {.sm_count = what_if.sm_count}));
  }
  gpu.hbm_bandwidth *= what_if.hbm_bandwidth;
  gpu.hbm_bandwidth_sustained *= what_if.hbm_bandwidth;
  gpu.l2_bandwidth *= what_if.l2_bandwidth;
  gpu.l2_capacity = Bytes(std::llround(gpu.l2_capacity.as_double() * what_if.l2_capacity));
  const double sms = static_cast<double>(gpu.sm_count);
  gpu.sm_count = std::max<std::int64_t>(1, std::llround(sms * what_if.sm_count));
  const double units = static_cast<double>(gpu.sm_count) / sms * what_if.sm_clock;
  for (FlopsPerSecond* rate :
       {&gpu.tensor_bf16, &gpu.tensor_fp16, &gpu.tensor_fp8, &gpu.tensor_int8, &gpu.vector_fp32}) {
    *rate *= units;
  }
  for (Hertz* clock : {&gpu.sm_clock, &gpu.sm_clock_base, &gpu.tensor_clock}) {
    *clock *= what_if.sm_clock;
  }
  gpu.name += "+what-if";
  gpu.title += ", what if " + describe(what_if);
  gpu.calibrated = false;
  gpu.checks.clear();
  return gpu;
}

}  // namespace fuseline
