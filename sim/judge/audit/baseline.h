// How slow a claim's baseline may be: as measured, or as predicted and as much slower as
// predictions of that baseline were found too fast.
#pragma once

#include <string>
#include <vector>

#include "sim/judge/audit/claim.h"
#include "sim/judge/audit/predictions.h"
#include "sim/judge/audit/setting.h"
#include "sim/measured/measurement.h"

namespace fuseline::audit {

// The longest time of one block under the baseline that can be defended.
struct SlowestBaseline {
  Seconds time;
  bool measured = false;  // that block on that GPU
  double factor = 1;      // time over the predicted time
};

// Measured blocks of the baselines and policies of claims that compare times.
class Baselines {
 public:
  // Keeps the measured blocks of the claim's baselines and policies in its phases, and notes the
  // predictions of the baselines'.
  void want(const Claim& claim, const std::vector<Measurements>& measurements,
            Predictions& predictions);

  // The slowest measurement of the setting's own block. Without one, `predicted` times the largest
  // ratio of measured to predicted time among the blocks of that baseline in that phase; at least
  // 1 + kTimeTolerance. `predicted`: of that block under the baseline.
  [[nodiscard]] SlowestBaseline slowest(const Setting& setting, Seconds predicted,
                                        const Predictions& predictions) const;

  // Measured speed-ups of the setting itself, one for each folder that has both blocks.
  [[nodiscard]] std::vector<double> speed_ups(const Setting& setting) const;

 private:
  struct Measured {
    PolicyCase what;
    Seconds time;
    std::string folder;
    bool predicted = false;
  };
  std::vector<Measured> blocks_;
};

}  // namespace fuseline::audit
