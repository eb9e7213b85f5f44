#include "sim/report/difference.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/gpu/gpu.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

const KernelEstimate* find(const PlanEstimate& e, const std::string& name) {
  const auto at = std::ranges::find(e.kernels, name, &KernelEstimate::name);
  return at == e.kernels.end() ? nullptr : &*at;
}

std::optional<KernelEstimate> copy_of(const KernelEstimate* kernel) {
  return kernel == nullptr ? std::nullopt : std::optional(*kernel);
}

std::vector<KernelDifference> kernels_of(const PlanEstimate& before, const PlanEstimate& after) {
  std::vector<KernelDifference> out;
  for (const KernelEstimate& k : after.kernels) {
    out.push_back({k.name, copy_of(find(before, k.name)), k});
  }
  for (const KernelEstimate& k : before.kernels) {
    if (find(after, k.name) == nullptr) out.push_back({k.name, k, std::nullopt});
  }
  return out;
}

double hbm_of(const std::optional<KernelEstimate>& k) {
  return k ? (k->hbm_read + k->hbm_write).as_double() : 0;
}

// The error names the file that names the GPU.
Gpu gpu_of(const PredictedSide& side) {
  try {
    return load_gpu(side.gpu);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (problem.file.empty()) problem.file = side.name;
    throw InputError(std::move(problem));
  }
}

}  // namespace

Seconds KernelDifference::time() const {
  return (after ? after->time : Seconds()) - (before ? before->time : Seconds());
}

double KernelDifference::hbm_bytes() const { return hbm_of(after) - hbm_of(before); }

std::vector<PlanDifference> differences(const PredictedSide& before, const PredictedSide& after) {
  const Gpu one = gpu_of(before), other = gpu_of(after);
  std::vector<PlanDifference> out;
  for (const PlanEstimate& b : before.plans) {
    const auto a = std::ranges::find(after.plans, b.policy, &PlanEstimate::policy);
    if (a == after.plans.end()) continue;
    PlanDifference d{.policy = b.policy, .before = b, .after = *a, .kernels = kernels_of(b, *a)};
    d.gain = b.time / a->time;
    const Standing standing = std::max(standing_for(one, before.workload, b.policy),
                                       standing_for(other, after.workload, b.policy));
    const WorkClass work = gain_class(gain_side(b, before.workload.phase),
                                      gain_side(*a, after.workload.phase), d.gain);
    if (b.time != a->time) d.band = shipped_bands().of_gain(work, standing, d.gain);
    d.verdict = b.time == a->time ? "the same" : verdict_of(d.gain, d.band);
    out.push_back(std::move(d));
  }
  return out;
}

}  // namespace fuseline
