#include <fmt/format.h>

#include "sim/judge/audit/report.h"

namespace fuseline::audit {

std::string predicted_text(const Audited& a) {
  if (a.tried.empty()) return "-";
  const Range range = predicted_range(a);
  const std::string low = amount_text(a.claim, range.least);
  const std::string high = amount_text(a.claim, range.most);
  if (low == high) return low;
  return low.substr(0, low.find_first_of(" x")) + " to " + high;
}

std::string limit_text(const Audited& a) {
  const Kind kind = a.claim.kind;
  const bool none = a.tried.empty() || kind == Kind::gemm_time_share || kind == Kind::coverage;
  return none ? "-" : amount_text(a.claim, boldest_limit(a));
}

std::string verdict_text(const Verdict& v) {
  std::string text = name_of(v.judgement);
  for (std::size_t i = 0; i < v.conditions.size(); ++i) {
    const bool last = i + 1 == v.conditions.size();
    text += (i == 0 ? " " : last ? " and " : ", ") + v.conditions[i];
  }
  return text;
}

std::string rests_on_text(const Verdict& v) {
  return fmt::format("{}", fmt::join(v.rests_on, ", "));
}

std::string checked_text(const Audit& audit) {
  if (audit.checks.empty()) return {};
  return fmt::format(
      "CHECKED: no constant was fitted on these GPUs, but predictions were measured on them: {}",
      fmt::join(audit.checks, "; "));
}

std::string uncalibrated_text(const Audit& audit) {
  if (audit.uncalibrated.empty()) return {};
  return fmt::format(
      "UNCALIBRATED: {}: no constant was fitted on these GPUs; datasheet "
      "numbers and constants of "
      "the H200 stand in",
      fmt::join(audit.uncalibrated, ", "));
}

}  // namespace fuseline::audit
