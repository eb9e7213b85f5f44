#include "sim/report/explained_plan.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "model/instructions/instructions.h"
#include "sim/block/residence.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

void put_predicted(ordered_json& out, const Sureness& sure, const std::string& policy,
                   const KernelEstimate& k) {
  const Band time = sure.time(k, policy), hbm = sure.hbm(k, policy);
  const Bytes bytes = k.hbm_read + k.hbm_write;
  out["time_us"] = to_us(k.time);
  out["time_us_low"] = to_us(low_end(k.time, time));
  out["time_us_high"] = to_us(high_end(k.time, time));
  out["hbm_bytes"] = bytes.value();
  out["hbm_bytes_low"] = low_end(bytes, hbm).value();
  out["hbm_bytes_high"] = high_end(bytes, hbm).value();
}

ordered_json explanation_json(const ExplainedPlan& explained, const Sureness& sure) {
  const Explanation& e = explained.what;
  ordered_json kernels = ordered_json::array(), tensors = ordered_json::array(),
               edges = ordered_json::array();
  for (const KernelExplanation& k : e.kernels) {
    kernels.push_back({{"name", k.name},
                       {"kind", k.kind},
                       {"implementation", k.implementation},
                       {"operators", k.operators},
                       {"programs", k.programs},
                       {"beside", k.beside}});
    const KernelEstimate* estimate = explained.kernel(k.name);
    if (estimate != nullptr) put_predicted(kernels.back(), sure, e.policy, *estimate);
  }
  for (const TensorExplanation& t : e.tensors) {
    tensors.push_back({{"name", t.name},
                       {"shape", t.shape},
                       {"role", t.role},
                       {"home", t.home},
                       {"producer", t.producer},
                       {"consumers", t.consumers},
                       {"bytes", t.bytes.value()}});
  }
  for (const EdgeExplanation& edge : e.edges) {
    edges.push_back({{"from", edge.from},
                     {"to", edge.to},
                     {"tensor", edge.tensor},
                     {"fused", edge.fused},
                     {"reason", edge.reason}});
  }
  return {{"policy", e.policy},
          {"rewrites", e.rewrites},
          {"preparation", e.preparation},
          {"kernels", std::move(kernels)},
          {"tensors", std::move(tensors)},
          {"edges", std::move(edges)}};
}

// Of the first SM; nothing where no kernel is known that has the block as instructions.
std::vector<std::string> first_instructions(const Plan& plan, const Kernel& kernel,
                                            const Gpu& gpu) {
  const auto read = decode_block(plan.graph, kernel);
  const auto* block = std::get_if<DecodeBlock>(&read);
  if (block == nullptr) return {};
  const BlockInstructions all = block_instructions(*block, {.sms = static_cast<int>(gpu.sm_count)});
  std::vector<std::string> lines;
  for (const Instruction& i : all.sms.front()) lines.push_back(text_of(all, i));
  return lines;
}

}  // namespace

const KernelEstimate* ExplainedPlan::kernel(const std::string& name) const {
  const auto at = std::ranges::find(estimate.kernels, name, &KernelEstimate::name);
  return at == estimate.kernels.end() ? nullptr : &*at;
}

ExplainedPlan explain_on(const Plan& plan, const Gpu& gpu) {
  ExplainedPlan out{explain(plan), simulate(plan, gpu, Fidelity::hierarchy)};
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    if (plan.kernels[k].implementation == Implementation::persistent_block)
      out.what.kernels[k].instructions = first_instructions(plan, plan.kernels[k], gpu);
  add_residence(out.what, plan, out.estimate);
  return out;
}

std::string explanations_json(const PredictionCase& s, const std::vector<ExplainedPlan>& all) {
  ordered_json plans = ordered_json::array();
  const Sureness sure(s.gpu, s.workload);
  for (const ExplainedPlan& e : all) plans.push_back(explanation_json(e, sure));
  const ordered_json out = {{"schema", "fuseline.plan/1"},
                            {"model", s.model.name},
                            {"phase", name_of(s.workload.phase)},
                            {"batch", s.workload.batch},
                            {"seq", s.workload.seq},
                            {"context", s.workload.context},
                            {"dtype", name_of(s.workload.dtype)},
                            {"weights", weights_text(s.workload)},
                            {"activations", activations_text(s.workload)},
                            {"kv", cache_text(s.workload)},
                            {"routing", routing_text(s.workload.routing)},
                            {"plans", std::move(plans)}};
  return json_text(out);
}

}  // namespace fuseline
