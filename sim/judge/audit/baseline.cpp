#include "sim/judge/audit/baseline.h"

#include <algorithm>

#include "base/lists.h"
#include "model/config/model_files.h"
#include "sim/gpu/gpu.h"
#include "sim/judge/audit/outcome.h"

namespace fuseline::audit {

namespace {

bool same(const PolicyCase& a, const PolicyCase& b) {
  return a.gpu == b.gpu &&
         same_case({a.model, a.policy, a.workload}, {b.model, b.policy, b.workload});
}

}  // namespace

void Baselines::want(const Claim& claim, const std::vector<Measurements>& measurements,
                     Predictions& predictions) {
  if (!compares(claim.kind) || !claim.sites.empty()) return;
  const std::vector<std::string> gpus = gpu_names(), models = model_names();
  for (const Measurements& m : measurements) {
    if (!holds(gpus, m.meta.gpu)) continue;
    for (const MeasuredBlock& b : m.blocks) {
      const bool baseline = holds(claim.choices.baselines, b.block.execution);
      if ((!baseline && !holds(claim.choices.policies, b.block.execution)) ||
          !holds(claim.choices.phases, b.block.workload.phase) || !holds(models, b.block.model)) {
        continue;
      }
      const Measured block = {{b.block.model, m.meta.gpu, b.block.execution, b.block.workload},
                              b.time.median,
                              m.path,
                              baseline};
      if (baseline) predictions.want(block.what);
      const auto known = std::find_if(blocks_.begin(), blocks_.end(), [&](const Measured& k) {
        return k.folder == block.folder && same(k.what, block.what);
      });
      if (known == blocks_.end()) {
        blocks_.push_back(block);
      } else {
        known->predicted = known->predicted || baseline;
      }
    }
  }
}

SlowestBaseline Baselines::slowest(const Setting& s, Seconds predicted,
                                   const Predictions& predictions) const {
  const PolicyCase own = {s.model, s.gpu, s.baseline, s.workload};
  SlowestBaseline out;
  double factor = 1 + kTimeTolerance;
  for (const Measured& b : blocks_) {
    if (!b.predicted || b.what.policy != s.baseline || b.what.workload.phase != s.workload.phase)
      continue;
    if (same(b.what, own)) {
      out.measured = true;
      out.time = std::max(out.time, b.time);
    } else {
      factor = std::max(factor, b.time / predictions.of(b.what).block.time);
    }
  }
  if (!out.measured) out.time = predicted * factor;
  out.factor = out.time / predicted;
  return out;
}

std::vector<double> Baselines::speed_ups(const Setting& s) const {
  const PolicyCase before = {s.model, s.gpu, s.baseline, s.workload};
  const PolicyCase after = {s.model, s.gpu, s.policy, s.workload};
  std::vector<double> out;
  for (const Measured& b : blocks_) {
    if (!same(b.what, before)) continue;
    for (const Measured& a : blocks_) {
      if (a.folder == b.folder && same(a.what, after)) out.push_back(b.time / a.time);
    }
  }
  return out;
}

}  // namespace fuseline::audit
