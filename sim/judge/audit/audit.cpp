#include "sim/judge/audit/audit.h"

#include <algorithm>

#include "base/error.h"
#include "base/thread_sharing.h"
#include "sim/gpu/standing.h"
#include "sim/judge/audit/findings.h"

namespace fuseline::audit {

namespace {

void note_gpus(const Claim& claim, const Predictions& predictions, Audit& out) {
  if (claim.kind == Kind::other) return;
  for (const std::string& name : claim.choices.gpus) {
    const Gpu& gpu = predictions.gpu(name);
    const Standing standing = standing_of(gpu);
    if (standing == Standing::fitted) continue;
    std::vector<std::string>& noted =
        standing == Standing::checked ? out.checked : out.uncalibrated;
    if (std::find(noted.begin(), noted.end(), name) != noted.end()) continue;
    noted.push_back(name);
    for (const GpuCheck& check : gpu.checks) {
      if (standing == Standing::checked) out.checks.push_back(name + ": " + describe(check));
    }
  }
}

// Sizes that check_workload refuses come from the claim's file.
void want_all(const Claim& claim, const std::vector<Setting>& settings, Predictions& predictions) {
  try {
    for (const Setting& s : settings) {
      predictions.want_gpu(s.gpu);
      for (const PolicyCase& c : cases_of(claim, s)) predictions.want(c);
    }
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (problem.file.empty()) problem.file = claim.file;
    throw InputError(std::move(problem));
  }
}

}  // namespace

Audit audit_claims(const std::vector<Claim>& claims,
                   const std::vector<Measurements>& measurements) {
  ThreadSharing threads;
  return audit_claims(claims, measurements, threads);
}

Audit audit_claims(const std::vector<Claim>& claims, const std::vector<Measurements>& measurements,
                   Sharing& sharing, const Sharing::Progress& progress) {
  Audit out;
  Predictions predictions;
  Baselines baselines;
  std::vector<std::vector<Setting>> settings;
  for (const Claim& claim : claims) {
    settings.push_back(settings_of(claim));
    want_all(claim, settings.back(), predictions);
    baselines.want(claim, measurements, predictions);
  }
  if (!predictions.make(sharing, progress)) {
    out.stopped = true;
    return out;
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Audited a{claims[i], {}, {}, {}, {}};
    for (Setting& s : settings[i]) {
      Outcome outcome = evaluate(claims[i], s, predictions, baselines);
      a.tried.push_back({std::move(s), std::move(outcome)});
    }
    a.verdict = judge(claims[i], a.tried);
    a.findings = findings(claims[i], a.tried, predictions);
    a.measured = measured_ratios(claims[i], measurements);
    note_gpus(claims[i], predictions, out);
    out.claims.push_back(std::move(a));
  }
  return out;
}

Range predicted_range(const Audited& audited) {
  Range range;
  bool first = true;
  for (const Tried& t : audited.tried) {
    const double value = t.outcome.predicted;
    range.least = first ? value : std::min(range.least, value);
    range.most = first ? value : std::max(range.most, value);
    first = false;
  }
  return range;
}

double boldest_limit(const Audited& audited) {
  const Kind kind = audited.claim.kind;
  const bool lowest = kind == Kind::fits_in_memory || kind == Kind::cost;
  double limit = 0;
  bool first = true;
  for (const Tried& t : audited.tried) {
    const double value = t.outcome.limit;
    limit = first ? value : (lowest ? std::min(limit, value) : std::max(limit, value));
    first = false;
  }
  return limit;
}

}  // namespace fuseline::audit
