#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "sim/judge/audit/report.h"

namespace fuseline::audit {

namespace {

using nlohmann::ordered_json;

const char* unit_of(const Claim& claim) {
  switch (claim.kind) {
    case Kind::speed_up:
    case Kind::latency:
    case Kind::bandwidth_ratio:
      return "factor";
    case Kind::latency_reduction:
    case Kind::gemm_time_share:
    case Kind::compute_bound:
    case Kind::coverage:
      return "fraction";
    case Kind::fits_in_memory:
      return "GB";
    case Kind::cost:
      return claim.figure.currency.c_str();
    case Kind::other:
      break;
  }
  return "";
}

ordered_json source_json(const Source& s) {
  ordered_json out = {{"title", s.title}};
  if (!s.author.empty()) out["author"] = s.author;
  out["date"] = s.date;
  if (!s.where.empty()) out["where"] = s.where;
  return out;
}

ordered_json figure_json(const Claim& claim) {
  const Figure& f = claim.figure;
  ordered_json out = {{"text", figure_text(claim)}};
  if (claim.kind == Kind::cost) {
    out["value"] = f.cost.value();
  } else if (claim.kind != Kind::fits_in_memory && claim.kind != Kind::compute_bound &&
             claim.kind != Kind::other) {
    out["least"] = f.ratio.least;
    out["most"] = f.ratio.most;
    out["up_to"] = f.up_to;
    out["at_least"] = f.at_least;
    out["everywhere"] = f.everywhere;
  }
  if (claim.kind == Kind::latency) {
    out["before_us"] = to_us(f.before);
    out["after_us"] = to_us(f.after);
    if (f.utilisation_before) out["utilisation_before"] = *f.utilisation_before;
    if (f.utilisation_after) out["utilisation_after"] = *f.utilisation_after;
  }
  return out;
}

ordered_json measured_json(const std::vector<MeasuredRatio>& ratios) {
  ordered_json out = ordered_json::array();
  for (const MeasuredRatio& r : ratios) {
    out.push_back({{"gpu", r.gpu},
                   {"from", r.from},
                   {"to", r.to},
                   {"as_claimed", r.as_claimed},
                   {"least_speed_up", r.speed_up.least},
                   {"most_speed_up", r.speed_up.most},
                   {"blocks", r.cases}});
  }
  return out;
}

ordered_json settings_json(const Audited& a) {
  ordered_json out = ordered_json::array();
  for (const Tried& t : a.tried) {
    ordered_json setting = ordered_json::object();
    for (const Dimension& d : dimensions(a.claim, t.setting)) {
      setting[d.name] = d.numeric ? ordered_json(d.number) : ordered_json(d.value);
    }
    const Outcome& o = t.outcome;
    setting["predicted"] = o.predicted;
    setting["limit"] = o.limit;
    if (o.baseline.time.value() > 0) {
      setting["baseline_measured"] = o.baseline.measured;
      setting["baseline_factor"] = o.baseline.factor;
      setting["measured"] = o.measured;
    }
    setting["reached"] = o.reached || o.bolder;
    setting["possible"] = o.possible;
    out.push_back(std::move(setting));
  }
  return out;
}

ordered_json claim_json(const Audited& a) {
  const Claim& c = a.claim;
  ordered_json out = {{"id", c.id},
                      {"verdict", name_of(a.verdict.judgement)},
                      {"conditions", a.verdict.conditions},
                      {"reason", a.verdict.reason},
                      {"rests_on", a.verdict.rests_on},
                      {"statement", c.statement},
                      {"kind", name_of(c.kind)},
                      {"source", source_json(c.source)},
                      {"claimed", figure_json(c)}};
  if (!a.tried.empty()) {
    const Range range = predicted_range(a);
    out["predicted"] = {{"least", range.least}, {"most", range.most}, {"unit", unit_of(c)}};
    if (c.kind != Kind::gemm_time_share && c.kind != Kind::coverage) {
      out["limit"] = {{"value", boldest_limit(a)}, {"unit", unit_of(c)}};
    }
  }
  out["measured"] = measured_json(a.measured);
  out["findings"] = a.findings;
  out["assumptions"] = c.assumptions;
  out["settings"] = settings_json(a);
  return out;
}

}  // namespace

std::string audit_json(const Audit& audit) {
  ordered_json claims = ordered_json::array();
  for (const Audited& a : audit.claims) claims.push_back(claim_json(a));
  const ordered_json all = {{"schema", "fuseline.audit/1"},
                            {"uncalibrated_gpus", audit.uncalibrated},
                            {"checked_gpus", audit.checked},
                            {"limit_tolerance", kLimitTolerance},
                            {"claims", std::move(claims)}};
  return json_text(all);
}

}  // namespace fuseline::audit
