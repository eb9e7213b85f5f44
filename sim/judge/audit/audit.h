// Published claims against the simulator, the machine's limits and what was measured.
#pragma once

#include <vector>

#include "base/sharing.h"
#include "sim/judge/audit/measured.h"
#include "sim/judge/audit/verdict.h"

namespace fuseline::audit {

struct Audited {
  Claim claim;
  std::vector<Tried> tried;
  Verdict verdict;
  std::vector<std::string> findings;
  std::vector<MeasuredRatio> measured;
};

struct Audit {
  std::vector<Audited> claims;  // in the order given
  // GPUs tried of which no constant was fitted: neither fitted nor checked, and checked.
  std::vector<std::string> uncalibrated, checked;
  std::vector<std::string> checks;  // how well: "h100-sxm: 18 blocks of ...: mean error ..."
  bool stopped = false;             // before all predictions were made; then no claim is judged
};

// Predictions at hierarchy fidelity, each made once for all claims by somebody who shares the work,
// as threads of this process where nobody is named. The audit is the same at all of them.
// InputError: a claim with too many settings; a setting that cannot be (the claim's file, as
// check_workload).
Audit audit_claims(const std::vector<Claim>& claims, const std::vector<Measurements>& measurements);
Audit audit_claims(const std::vector<Claim>& claims, const std::vector<Measurements>& measurements,
                   Sharing& sharing, const Sharing::Progress& progress = {});

// The boldest limit and the range predicted over the settings, in the kind's own quantity.
Range predicted_range(const Audited& audited);
double boldest_limit(const Audited& audited);

}  // namespace fuseline::audit
