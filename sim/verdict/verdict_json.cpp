#include "sim/verdict/verdict_json.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

ordered_json turnings_json(const std::vector<SizeTurning>& turnings) {
  ordered_json list = ordered_json::array();
  for (const SizeTurning& t : turnings) {
    const Turning& turning = t.turning;
    ordered_json one = {{"size", t.letter},
                        {"asked", turning.searched.asked},
                        {"least", turning.searched.least},
                        {"most", turning.searched.most},
                        {"turns", turning.turns},
                        {"at", nullptr}};
    if (turning.at) {
      one["at"] = *turning.at;
      one["gains"] = turning.gains_above ? "from" : "below";
    }
    list.push_back(std::move(one));
  }
  return list;
}

void put_fusion_gain(ordered_json& out, const FusionGain& g) {
  const double gain = g.gain();
  out["verdict"] = g.verdict;
  out["time_us_without"] = to_us(g.without);
  out["time_us_with"] = to_us(g.with);
  out["gain"] = gain;
  out["gain_low"] = gain * g.band.low;
  out["gain_high"] = gain * g.band.high;
}

}  // namespace

std::string verdict_json(const PredictionCase& s, const BlockVerdict& v) {
  ordered_json edges = ordered_json::array(), policies = ordered_json::array();
  for (const EdgeVerdict& e : v.edges) {
    ordered_json one = {{"from", e.edge.from}, {"to", e.edge.to},      {"tensor", e.tensor},
                        {"kept", e.kept},      {"rewrite", e.rewrite}, {"verdict", "cannot"}};
    if (e.gain) {
      put_fusion_gain(one, *e.gain);
      one["apart_us"] = to_us(e.saved);
      one["together_us"] = to_us(e.added);
      one["hbm_bytes_difference"] = static_cast<std::int64_t>(e.hbm_bytes);
    }
    one["limited_by"] = e.limit.word;
    one["why"] = e.limit.why;
    if (e.gain) one["turnings"] = turnings_json(e.turnings);
    edges.push_back(std::move(one));
  }
  for (const PolicyVerdict& p : v.policies) {
    ordered_json one = {{"policy", p.policy}, {"launches", p.launches}};
    put_fusion_gain(one, p.gain);
    one["limited_by"] = p.limit.word;
    one["why"] = p.limit.why;
    one["turnings"] = turnings_json(p.turnings);
    policies.push_back(std::move(one));
  }
  return json_text({{"schema", "fuseline.verdict/1"},
                    {"model", s.model.name},
                    {"gpu", s.gpu.name},
                    {"phase", name_of(s.workload.phase)},
                    {"batch", s.workload.batch},
                    {"seq", s.workload.seq},
                    {"context", s.workload.context},
                    {"on", v.on},
                    {"time_us", to_us(v.time)},
                    {"custom_time_us", to_us(v.base_time)},
                    {"edges", std::move(edges)},
                    {"policies", std::move(policies)}});
}

}  // namespace fuseline
