#include "sim/search/search_json.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "model/programs/program_file.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

// In the unit of the key: microseconds, joules, or whole numbers of bytes and launches.
ordered_json value_json(Objective objective, double value) {
  if (objective == Objective::time) return shown(objective, value);
  if (objective == Objective::energy) return value;
  return static_cast<std::int64_t>(value);
}

std::string key_of(Objective objective) {
  switch (objective) {
    case Objective::time:
      return "time_us";
    case Objective::hbm:
      return "hbm_bytes";
    case Objective::launches:
      return "launches";
    case Objective::memory:
      return "memory_bytes";
    default:
      return "energy_j";
  }
}

void put_values(ordered_json& out, const PlanValues& values, const Gpu& gpu) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto objective = static_cast<Objective>(i);
    if (why_not_modelled(objective, gpu).empty())
      out[key_of(objective)] = value_json(objective, values[i]);
  }
}

void put_gain(ordered_json& out, const FusionGain& g) {
  out["gain"] = g.gain();
  out["gain_low"] = g.gain() * g.band.low;
  out["gain_high"] = g.gain() * g.band.high;
  out["verdict"] = g.verdict;
}

ordered_json policies_json(const SearchResult& r, const Gpu& gpu) {
  ordered_json list = ordered_json::array();
  for (const PolicyComparison& p : r.policies) {
    ordered_json one = {{"policy", p.policy}};
    put_values(one, p.values, gpu);
    if (p.gain) put_gain(one, *p.gain);
    one["in_space"] = p.outside.empty();
    one["outside"] = p.outside;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::string search_json(const PredictionCase& c, const SearchResult& r) {
  ordered_json out = {{"schema", "fuseline.search/1"},
                      {"model", c.model.name},
                      {"gpu", c.gpu.name},
                      {"phase", name_of(c.workload.phase)},
                      {"batch", c.workload.batch},
                      {"seq", c.workload.seq},
                      {"context", c.workload.context},
                      {"objective", name_of(r.objective)}};
  put_values(out, r.values, c.gpu);
  out["time_us_low"] = to_us(low_end(r.estimate.time, r.time_band));
  out["time_us_high"] = to_us(high_end(r.estimate.time, r.time_band));
  // Of the time, whatever the objective is; `bound`: of the objective.
  out["bound_us"] = r.objective == Objective::time ? shown(Objective::time, r.bound)
                                                   : to_us(r.estimate.limits.time);
  out["bound"] = value_json(r.objective, r.bound);
  out["optimal"] = r.complete;
  out["gap"] = r.gap();
  out["stopped"] = r.stopped;
  out["kernels_allowed"] = name_of(r.allowed);
  out["plan_of_policy"] = r.policys_own.empty() ? ordered_json() : ordered_json(r.policys_own);
  out["evaluated"] = r.tried;
  out["rewrite_lists"] = r.rewrites;
  out["kernels"] = r.kernels;
  out["seconds"] = r.seconds;
  out["policies"] = policies_json(r, c.gpu);
  ordered_json decisions = ordered_json::array();
  for (const Decision& d : r.decisions) {
    ordered_json one = {{"kind", d.kind},
                        {"what", d.what},
                        {"time_us_without", to_us(d.gain.without)},
                        {"value_without", value_json(r.objective, d.value)}};
    put_gain(one, d.gain);
    decisions.push_back(std::move(one));
  }
  out["decisions"] = std::move(decisions);
  if (!r.front.empty()) {
    ordered_json front = ordered_json::array();
    for (const FrontPlan& f : r.front) {
      ordered_json one;
      put_values(one, f.values, c.gpu);
      one["plan"] = plan_text(f.plan, c.gpu.name);
      front.push_back(std::move(one));
    }
    out["front"] = std::move(front);
  }
  out["plan"] = plan_text(r.plan, c.gpu.name);
  return json_text(out);
}

}  // namespace fuseline
