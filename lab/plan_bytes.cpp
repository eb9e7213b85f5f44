#include "lab/plan_bytes.h"

#include <algorithm>

#include "sim/memory/traffic.h"

namespace fuseline::lab {

namespace {

bool holds_site(const Plan& plan, const Kernel& kernel, const std::string& site) {
  return std::ranges::any_of(kernel.ops, [&](OpId id) { return plan.graph.op(id).site == site; });
}

Bytes kernel_bytes(const Plan& plan, const Kernel& kernel) {
  const DistinctBytes distinct = distinct_bytes(plan.graph, kernel);
  return distinct.loaded + distinct.stored;
}

}  // namespace

Bytes plan_bytes(const Plan& plan) {
  Bytes sum;
  for (const Kernel& kernel : plan.kernels) sum += kernel_bytes(plan, kernel);
  return sum;
}

Bytes site_bytes(const Plan& plan, const std::string& site) {
  Bytes sum;
  for (const Kernel& kernel : plan.kernels) {
    if (holds_site(plan, kernel, site)) sum += kernel_bytes(plan, kernel);
  }
  return sum;
}

std::int64_t site_kernels(const Plan& plan, const std::string& site) {
  return std::ranges::count_if(plan.kernels,
                               [&](const Kernel& k) { return holds_site(plan, k, site); });
}

}  // namespace fuseline::lab
