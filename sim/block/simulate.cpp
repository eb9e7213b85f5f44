#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "sim/block/block_walk.h"
#include "sim/block/estimate.h"
#include "sim/block/launch_overlap.h"
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
    estimate.dynamic_energy += k.dynamic_energy;
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

Seconds time_of_all(const std::vector<WalkedKernel>& kernels, const Gpu& gpu, double factor) {
  Seconds time;
  for (const WalkedKernel& kernel : kernels) time += time_at(kernel, gpu, factor);
  return time;
}

// The clock that the whole block's power allows, and the kernels' times and energies at it. No
// clock makes the block shorter than `least`.
double apply_power_limit(std::vector<WalkedKernel>& kernels, const Gpu& gpu, double repeats,
                         Seconds least) {
  const PowerModel model = power_model(gpu);
  Joules dynamic;
  for (WalkedKernel& kernel : kernels) {
    KernelEstimate& k = kernel.estimate;
    k.dynamic_energy = dynamic_energy(model, on_tensor_cores(k) ? k.flops - k.spared : Flops(),
                                      k.hbm_read + k.hbm_write, k.l2, k.smem);
    dynamic += k.dynamic_energy;
  }
  const auto time = [&](double factor) {
    return std::max(least, time_of_all(kernels, gpu, factor));
  };
  const double steady = steady_clock_factor(model, dynamic, time);
  if (steady >= 1.0) return 1.0;
  const double factor = clock_factor_after(model, steady, time(1.0) * (repeats / 2));
  if (factor >= 1.0) return 1.0;
  for (WalkedKernel& kernel : kernels) {
    KernelEstimate& k = kernel.estimate;
    k.time = time_at(kernel, gpu, factor);
    k.dynamic_energy = k.dynamic_energy * std::pow(factor, model.clock_exponent - 1);
  }
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
    sum_kernels(estimate);
  } else {
    check_walk_size(plan);
    std::vector<WalkedKernel> kernels = walk_block(
        plan, gpu,
        {.replay = options.replay,
         .rotating = options.rotating,
         .runs = options.runs,
         .copies = options.copies,
         .by_tensor = options.by_tensor,
         .memo = options.remember && options.watcher == nullptr ? &WalkMemo::shared() : nullptr,
         .watcher = options.watcher});
    // The CPU's launches run ahead of the GPU: in a row of blocks the slower of both sets the pace.
    Seconds least;
    if (options.launching == Launching::stream) {
      for (const WalkedKernel& kernel : kernels)
        least += gpu.constants.launch.stream * static_cast<double>(kernel.estimate.launches);
    }
    estimate.clock_factor = apply_power_limit(kernels, gpu, options.repeats, least);
    for (WalkedKernel& kernel : kernels) estimate.kernels.push_back(std::move(kernel.estimate));
    if (options.launching == Launching::overlap) overlap_launches(plan, gpu, estimate.kernels);
    sum_kernels(estimate);
    estimate.launch_wait = std::max(Seconds(), least - estimate.time);
    estimate.time += estimate.launch_wait;
  }
#ifndef NDEBUG
  // Replays find in L2 what a row of blocks must fetch.
  if (!options.replay && options.copies == 0) check_limits(estimate);
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

const char* name_of(Launching launching) {
  switch (launching) {
    case Launching::graph:
      return "graph";
    case Launching::overlap:
      return "overlap";
    case Launching::stream:
      return "stream";
  }
  FUSELINE_ASSERT(false, "launching");
}

std::vector<std::string> launching_names() {
  return {name_of(Launching::graph), name_of(Launching::overlap), name_of(Launching::stream)};
}

}  // namespace fuseline
