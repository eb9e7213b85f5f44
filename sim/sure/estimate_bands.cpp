#include "sim/sure/estimate_bands.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/policy.h"

namespace fuseline {

namespace {

// Below the first, launches and ramps set the time; below the second, a wave or two of tiles.
constexpr double kShortKernelUs = 5, kSmallKernelUs = 50;
// The same of a block: by the mean of its launches, then by its whole time.
constexpr double kShortLaunchUs = 8, kSmallBlockUs = 200;
// Gains of 10 % and more come from whole kernels that fall away, smaller ones from their parts.
const double kSmallGain = std::log(1.1);

// Of the policy with this name; null: there is none. Predictions of many programs ask often, and
// policies are registered before main() begins.
const PolicyInfo* policy_info(const std::string& name) {
  static const std::vector<PolicyInfo> all = policies();
  const auto found = std::ranges::find(all, name, &PolicyInfo::name);
  return found == all.end() ? nullptr : &*found;
}

std::string block_size(const PlanEstimate& e) {
  const double us = to_us(e.time);
  if (us < kShortLaunchUs * static_cast<double>(std::max<std::int64_t>(1, e.launches))) {
    return "short";
  }
  return us < kSmallBlockUs ? "small" : "large";
}

std::string kernel_size(const KernelEstimate& k) {
  const double us = to_us(k.time);
  if (us < kShortKernelUs) return "short";
  return us < kSmallKernelUs ? "small" : "large";
}

std::string kernels_of(const PlanEstimate& e) {
  const auto has = [&e](KernelKind kind) {
    return std::ranges::any_of(e.kernels, [&](const KernelEstimate& k) { return k.kind == kind; });
  };
  if (has(KernelKind::scan)) return "scans";
  // Attention as products of their own, whose scores go through memory; or no attention at all.
  if (!has(KernelKind::attention) && !has(KernelKind::block)) return "scores";
  return e.in_groups ? "experts" : "dense";
}

std::string apart_of(const PlanEstimate& e) {
  for (const KernelEstimate& k : e.kernels)
    if (!k.judged_apart.empty()) return k.judged_apart;
  return {};
}

WorkClass block_class(const char* what, const PlanEstimate& e, Phase phase) {
  return {.what = what,
          .phase = name_of(phase),
          .maker = maker_of(e.policy),
          .kernels = kernels_of(e),
          .size = block_size(e),
          .apart = apart_of(e)};
}

WorkClass kernel_class(const char* what, const KernelEstimate& k, Phase phase,
                       const std::string& maker) {
  return {.what = what,
          .phase = name_of(phase),
          .maker = maker,
          .kernels = name_of(k.kind),
          .size = kernel_size(k),
          .apart = k.judged_apart};
}

}  // namespace

std::string maker_of(const std::string& policy) {
  if (policy.empty()) return "library";
  const PolicyInfo* info = policy_info(policy);
  const bool imitates = info != nullptr && (!info->version.empty() || !info->unverified.empty());
  return imitates ? "library" : "own";
}

WorkClass time_class(const PlanEstimate& e, Phase phase) {
  WorkClass work = block_class("time", e, phase);
  work.traits = time_traits(e, work);
  return work;
}
WorkClass hbm_class(const PlanEstimate& e, Phase phase) { return block_class("hbm", e, phase); }
WorkClass time_class(const KernelEstimate& k, Phase phase, const std::string& maker) {
  return kernel_class("kernel_time", k, phase, maker);
}
WorkClass hbm_class(const KernelEstimate& k, Phase phase, const std::string& maker) {
  return kernel_class("kernel_hbm", k, phase, maker);
}

GainSide gain_side(const PlanEstimate& e, Phase phase) {
  return {.time = time_class(e, phase), .kernels = outlines_of(e)};
}

WorkClass gain_class(const GainSide& base, const GainSide& plan, double gain) {
  const WorkClass &one = base.time, &other = plan.time;
  WorkClass work = {.what = "gain",
                    .phase = one.phase,
                    .maker = one.maker == other.maker ? one.maker : "mixed",
                    .kernels = one.kernels == "dense" ? other.kernels : one.kernels,
                    .size = std::abs(std::log(gain)) < kSmallGain ? "small" : "large",
                    .apart = one.apart.empty() ? other.apart : one.apart};
  work.traits = gain < 1 ? gain_traits(work, plan.kernels, base.kernels)
                         : gain_traits(work, base.kernels, plan.kernels);
  return work;
}

Standing standing_for(const Gpu& gpu, const Workload& workload, const std::string& policy) {
  const PolicyInfo* info = policy_info(policy);
  const bool unverified = info != nullptr && !info->unverified.empty();
  if (unverified || workload.formats != Formats{}) return Standing::uncalibrated;
  return standing_of(gpu);
}

std::optional<Band> Sureness::time(const PlanEstimate& e) const {
  if (e.fidelity == Fidelity::roofline) return std::nullopt;
  return bands().of(time_class(e, workload_->phase), standing_for(*gpu_, *workload_, e.policy),
                    e.time.value());
}

std::optional<Band> Sureness::hbm(const PlanEstimate& e) const {
  if (e.fidelity == Fidelity::roofline) return std::nullopt;
  return bands().of(hbm_class(e, workload_->phase), standing_for(*gpu_, *workload_, e.policy),
                    (e.hbm_read + e.hbm_write).as_double());
}

Band Sureness::time(const KernelEstimate& k, const std::string& policy) const {
  return bands().of(time_class(k, workload_->phase, maker_of(policy)),
                    standing_for(*gpu_, *workload_, policy), k.time.value());
}

Band Sureness::hbm(const KernelEstimate& k, const std::string& policy) const {
  return bands().of(hbm_class(k, workload_->phase, maker_of(policy)),
                    standing_for(*gpu_, *workload_, policy),
                    (k.hbm_read + k.hbm_write).as_double());
}

std::optional<Band> Sureness::gain(const PlanEstimate& base, const PlanEstimate& plan) const {
  if (plan.fidelity == Fidelity::roofline) return std::nullopt;
  if (base.policy == plan.policy && base.time == plan.time) return Band{};
  return band_of_gain(base, plan, base.time / plan.time);
}

Band Sureness::gain_of_part(const PlanEstimate& base, const PlanEstimate& plan, Seconds before,
                            Seconds after) const {
  if (base.time == plan.time) return Band{};
  const Band band = band_of_gain(base, plan, before / after);
  const double share = before / base.time;
  return {1 - share * (1 - band.low), 1 + share * (band.high - 1)};
}

Band Sureness::band_of_gain(const PlanEstimate& base, const PlanEstimate& plan, double gain) const {
  const Phase phase = workload_->phase;
  const Standing standing = std::max(standing_for(*gpu_, *workload_, base.policy),
                                     standing_for(*gpu_, *workload_, plan.policy));
  return bands().of_gain(gain_class(gain_side(base, phase), gain_side(plan, phase), gain), standing,
                         gain);
}

std::string verdict_of(double gain, const Band& band) {
  if (gain == 1 && band.low == 1 && band.high == 1) return "the same";
  if (gain * band.low > 1) return "faster";
  return gain * band.high < 1 ? "slower" : "too close to call";
}

}  // namespace fuseline
