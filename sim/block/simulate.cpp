#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "sim/block/block_walk.h"
#include "sim/block/estimate.h"
#include "sim/block/limits.h"
#include "sim/block/roofline.h"
#include "sim/block/walk_size.h"
#include "sim/gpu/power.h"

namespace fuseline {
namespace {

void sum_kernels(PlanEstimate& estimate) {
  for (const KernelEstimate& k : estimate.kernels) {
    estimate.time += k.time;
    estimate.flops += k.flops;
    estimate.hbm_read += k.hbm_read;
    estimate.hbm_write += k.hbm_write;
    estimate.l2 += k.l2;
    estimate.launches += k.launches;
  }
}

bool on_tensor_cores(const KernelEstimate& k) {
  return k.kind == KernelKind::gemm || k.kind == KernelKind::attention ||
         k.kind == KernelKind::scan || k.kind == KernelKind::block;
}

// Nothing that is predicted may beat what is possible.
[[maybe_unused]] void check_limits(const PlanEstimate& e) {
  const auto text = [&](const char* what, double got, double least) {
    return e.policy + ": " + what + " " + std::to_string(got) + " below the limit " +
           std::to_string(least);
  };
  const Bytes hbm = e.hbm_read + e.hbm_write;
  FUSELINE_ASSERT(hbm >= e.limits.least,
                  text("HBM bytes", hbm.as_double(), e.limits.least.as_double()));
  FUSELINE_ASSERT(e.fidelity == Fidelity::roofline || hbm >= e.limits.capacity_bound,
                  text("HBM bytes", hbm.as_double(), e.limits.capacity_bound.as_double()));
  FUSELINE_ASSERT(e.time >= e.limits.time * (1 - 1e-9),
                  text("seconds", e.time.value(), e.limits.time.value()));
}

// The clock that the whole block's power allows, and the kernels' times at it.
double apply_power_limit(std::vector<WalkedKernel>& kernels, const Gpu& gpu, double repeats) {
  const PowerModel model = power_model(gpu);
  PowerLoad load;
  for (const WalkedKernel& kernel : kernels) {
    const KernelEstimate& k = kernel.estimate;
    load += {dynamic_energy(model, on_tensor_cores(k) ? k.flops - k.spared : Flops(),
                            k.hbm_read + k.hbm_write, k.l2),
             k.time};
  }
  const double factor = clock_factor_after(model, load, load.time * (repeats / 2));
  if (factor >= 1.0) return 1.0;
  for (WalkedKernel& kernel : kernels) kernel.estimate.time = time_at(kernel, gpu, factor);
  return factor;
}

bool has_groups(const Graph& graph) {
  return std::ranges::any_of(
      graph.ops(), [](const Op& op) { return is_gemm(op) && !gemm_shape(op).groups.empty(); });
}

}  // namespace

PlanEstimate simulate(const Plan& plan, const Gpu& gpu, Fidelity fidelity,
                      const SimulationOptions& options) {
  PlanEstimate estimate;
  estimate.policy = plan.policy;
  estimate.fidelity = fidelity;
  estimate.limits = limits_of(plan.block, gpu);
  estimate.in_groups = has_groups(plan.graph);
  if (fidelity == Fidelity::roofline) {
    estimate.kernels = roofline(plan, gpu);
  } else {
    check_walk_size(plan);
    std::vector<WalkedKernel> kernels =
        walk_block(plan, gpu,
                   {.replay = options.replay,
                    .runs = options.runs,
                    .memo = options.remember ? &WalkMemo::shared() : nullptr});
    estimate.clock_factor = apply_power_limit(kernels, gpu, options.repeats);
    for (WalkedKernel& kernel : kernels) estimate.kernels.push_back(std::move(kernel.estimate));
  }
  sum_kernels(estimate);
#ifndef NDEBUG
  // Replays find in L2 what a row of blocks must fetch.
  if (!options.replay) check_limits(estimate);
#endif
  FUSELINE_ASSERT(std::isfinite(estimate.time.value()) && estimate.time > Seconds(),
                  plan.policy + " on " + gpu.name);
  return estimate;
}

const char* name_of(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::roofline:
      return "roofline";
    case Fidelity::hierarchy:
      return "hierarchy";
  }
  FUSELINE_ASSERT(false, "fidelity");
}

}  // namespace fuseline
