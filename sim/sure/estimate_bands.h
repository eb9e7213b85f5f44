// The bands of estimates: which class an estimate is of, and what the shipped table says of it.
#pragma once

#include <optional>
#include <string>

#include "model/config/config.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/sure/band.h"
#include "sim/sure/traits.h"

namespace fuseline {

// "library" for a policy that imitates another system, "own" for the rest.
std::string maker_of(const std::string& policy);

WorkClass time_class(const PlanEstimate& estimate, Phase phase);
WorkClass hbm_class(const PlanEstimate& estimate, Phase phase);
WorkClass time_class(const KernelEstimate& kernel, Phase phase, const std::string& maker);
WorkClass hbm_class(const KernelEstimate& kernel, Phase phase, const std::string& maker);
// A plan of a block, as far as the class of its gain over another one depends on it.
struct GainSide {
  WorkClass time;  // its class
  std::vector<KernelOutline> kernels;
};
GainSide gain_side(const PlanEstimate& estimate, Phase phase);
// Of the gain of `plan` over `base`, of the same block: the time of `base` over that of `plan`.
WorkClass gain_class(const GainSide& base, const GainSide& plan, double gain);

// As what its GPU counts for this work. Numbers in few bits were measured as products alone, never
// as blocks, and of some policies' systems nothing was compared: both count as on a GPU never
// measured.
Standing standing_for(const Gpu& gpu, const Workload& workload, const std::string& policy = {});

// How sure the estimates of one block are. A roofline is a bound and has no bands. GPU, workload
// and table must outlive it.
class Sureness {
 public:
  Sureness(const Gpu& gpu, const Workload& workload, const BandTable& bands)
      : bands_(&bands), gpu_(&gpu), workload_(&workload) {}
  // By shipped_bands(), which are read when the first band is asked for.
  Sureness(const Gpu& gpu, const Workload& workload) : gpu_(&gpu), workload_(&workload) {}

  [[nodiscard]] std::optional<Band> time(const PlanEstimate& estimate) const;
  [[nodiscard]] std::optional<Band> hbm(const PlanEstimate& estimate) const;
  // Of a kernel of that policy's plan; empty: of a library's.
  [[nodiscard]] Band time(const KernelEstimate& kernel, const std::string& policy) const;
  [[nodiscard]] Band hbm(const KernelEstimate& kernel, const std::string& policy) const;
  // Of base.time / plan.time.
  [[nodiscard]] std::optional<Band> gain(const PlanEstimate& base, const PlanEstimate& plan) const;
  // Of the same where the plans differ in a part alone, which takes `before` in `base` and `after`
  // in `plan`: the part's gain has the band of a gain, and the rest runs alike in both. No
  // roofline.
  [[nodiscard]] Band gain_of_part(const PlanEstimate& base, const PlanEstimate& plan,
                                  Seconds before, Seconds after) const;

 private:
  [[nodiscard]] Band band_of_gain(const PlanEstimate& base, const PlanEstimate& plan,
                                  double gain) const;

  [[nodiscard]] const BandTable& bands() const {
    return bands_ == nullptr ? shipped_bands() : *bands_;
  }

  const BandTable* bands_ = nullptr;
  const Gpu* gpu_;
  const Workload* workload_;
};

// "the same" where nothing differs, "faster" or "slower" where the band of the gain does not hold
// 1, else "too close to call".
std::string verdict_of(double gain, const Band& band);

}  // namespace fuseline
