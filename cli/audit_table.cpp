#include "cli/audit_table.h"

#include <fmt/format.h>

#include "cli/table.h"
#include "sim/judge/audit/report.h"

namespace fuseline {

namespace {

std::string numbers(const audit::Audit& audit) {
  std::vector<std::vector<std::string>> rows;
  for (const audit::Audited& a : audit.claims) {
    rows.push_back({a.claim.id, figure_text(a.claim), predicted_text(a), limit_text(a),
                    name_of(a.verdict.judgement)});
  }
  return format_table(
      {{"claim", Align::left}, {"claimed"}, {"predicted"}, {"limit"}, {"verdict", Align::left}},
      rows);
}

std::string detail(const std::string& text) {
  const std::string first = "  - ", more = "    ";
  std::string out;
  for (const std::string& line : broken(text, kTableWidth - first.size())) {
    out += (out.empty() ? first : more) + line + "\n";
  }
  return out;
}

}  // namespace

std::string audit_table(const audit::Audit& audit, bool details) {
  std::string out = numbers(audit);
  const std::string uncalibrated = uncalibrated_text(audit);
  if (!uncalibrated.empty()) out += wrap(uncalibrated);
  const std::string checked = checked_text(audit);
  if (!checked.empty()) out += wrap(checked);
  out += "\n";
  for (const audit::Audited& a : audit.claims) {
    out += wrap(fmt::format("{}: {}: {}", a.claim.id, verdict_text(a.verdict), a.verdict.reason));
    if (!a.verdict.rests_on.empty()) {
      out += detail("this rests on what the source leaves open: " + rests_on_text(a.verdict));
    }
    if (!details) continue;
    out += detail(a.claim.statement);
    for (const std::string& f : a.findings) out += detail(f);
    for (const audit::MeasuredRatio& r : a.measured) {
      out += detail((r.as_claimed ? "measured: " : "measured, for want of the policy claimed: ") +
                    describe(r));
    }
    for (const std::string& s : a.claim.assumptions) out += detail("assumed: " + s);
  }
  return out;
}

}  // namespace fuseline
