#include <set>

#include <fmt/format.h>

#include "sim/judge/audit/report.h"

namespace fuseline::audit {

namespace {

std::string source_text(const Source& s) {
  std::string text = s.author.empty() ? "" : s.author + ": ";
  text += s.title + ", " + s.date;
  return s.where.empty() ? text : text + ", " + s.where;
}

template <class T>
std::string listed(const std::vector<T>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

// What the settings have in common and what they differ in, with all values.
std::string tried_text(const Audited& a) {
  std::vector<std::string> parts;
  const std::vector<Dimension> first = dimensions(a.claim, a.tried.front().setting);
  for (std::size_t d = 0; d < first.size(); ++d) {
    std::vector<std::string> values;
    std::set<std::string> seen;
    for (const Tried& t : a.tried) {
      std::string value = dimensions(a.claim, t.setting)[d].value;
      if (seen.insert(value).second) values.push_back(std::move(value));
    }
    parts.push_back(first[d].name + " " + listed(values));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string section(const Audited& a) {
  const Claim& c = a.claim;
  std::string out = fmt::format("\n## {}\n\n{}.\n\n", c.id, c.statement);
  out += fmt::format("* source: {}\n", source_text(c.source));
  out += fmt::format("* verdict: **{}**: {}\n", verdict_text(a.verdict), a.verdict.reason);
  if (!a.verdict.rests_on.empty()) {
    out += fmt::format("* it rests on what the source leaves open: {}\n", rests_on_text(a.verdict));
  }
  if (!a.tried.empty()) {
    out += fmt::format("* claimed {}; predicted {} in {} settings", figure_text(c),
                       predicted_text(a), a.tried.size());
    const std::string limit = limit_text(a);
    out += limit == "-" ? "\n" : fmt::format("; no implementation passes {}\n", limit);
    out += fmt::format("* settings: {}\n", tried_text(a));
    if (!c.stated.empty())
      out += fmt::format("* of these the source states: {}\n", listed(c.stated));
  }
  if (!c.sites.empty()) out += fmt::format("* steps of the block: {}\n", listed(c.sites));
  for (const std::string& f : a.findings) out += fmt::format("* {}\n", f);
  for (const MeasuredRatio& r : a.measured) {
    out += fmt::format("* measured{}: {}\n", r.as_claimed ? "" : ", for want of the policy claimed",
                       describe(r));
  }
  for (const std::string& s : c.assumptions) out += fmt::format("* assumed: {}\n", s);
  return out;
}

}  // namespace

std::string audit_markdown(const Audit& audit, const std::string& command) {
  std::string out = fmt::format(
      "# Published claims, audited\n\n"
      "Made by `{}`.\n\n"
      "Each claim is predicted in every setting that its source leaves open. No implementation can "
      "pass the column *limit*.\nThe limit is computed in favour of the claim:\n\n"
      "* What is claimed gets the limits that `fuseline predict` shows: the least bytes through "
      "HBM "
      "at the GPU's sustained\n  bandwidth, and the FLOPs at its tensor cores' rate at the boost "
      "clock. Both are taken {:.0f} % better, because another\n  sample of the GPU may be better.\n"
      "* The baseline, with which the claim compares it, gets its slowest time. That is the "
      "measured "
      "one. Where nobody measured\n  the baseline, it is the predicted time and {:.0f} % more, or "
      "as "
      "much more as measured blocks of that baseline were slower\n  than predicted.\n\n"
      "A prediction supports a claimed speed-up when the two differ by at most {:.0f} %, and a "
      "claimed time or cost when they\ndiffer by at most {:.0f} %. Predictions differ from "
      "measurements by about as much.\n\n",
      command, 100 * kLimitTolerance, 100 * kTimeTolerance, 100 * kRatioTolerance,
      100 * kTimeTolerance);
  const std::string uncalibrated = uncalibrated_text(audit);
  if (!uncalibrated.empty()) out += uncalibrated + ".\n\n";
  const std::string checked = checked_text(audit);
  if (!checked.empty()) out += checked + ".\n\n";
  out += "| claim | claimed | predicted | limit | verdict |\n|---|---|---|---|---|\n";
  for (const Audited& a : audit.claims) {
    out += fmt::format("| [{}](#{}) | {} | {} | {} | {} |\n", a.claim.id, a.claim.id,
                       figure_text(a.claim), predicted_text(a), limit_text(a),
                       verdict_text(a.verdict));
  }
  for (const Audited& a : audit.claims) out += section(a);
  return out;
}

}  // namespace fuseline::audit
