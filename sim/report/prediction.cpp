#include "sim/report/prediction.h"

namespace fuseline {

std::optional<Money> cost_per_million_tokens(const Prediction& prediction,
                                             const PredictionCase& c) {
  if (!c.price || c.layers || !prediction.layers) return std::nullopt;
  return cost_per_million_tokens(*c.price, prediction.layers->time, c.workload);
}

const PlanEstimate& baseline_of(const std::vector<Prediction>& predictions) {
  for (const Prediction& p : predictions) {
    if (p.block.policy == "unfused") return p.block;
  }
  return predictions.front().block;
}

PlanEstimate simulate_replay(const Plan& plan, const PredictionCase& c) {
  return simulate(plan, c.gpu, c.fidelity, {.replay = true, .runs = 2, .launching = c.launching});
}

Prediction predict(const Plan& plan, const PredictionCase& c, const Measurements* measurements) {
  Prediction out;
  out.block = simulate(plan, c.gpu, c.fidelity, {.launching = c.launching});
  if (!c.layers) {
    out.layers = whole_model(out.block, c.model, c.workload, c.gpu, c.launching);
    out.memory = memory_need(plan, c.model, c.workload);
  } else if (*c.layers > 1) {
    out.layers = repeat_block(out.block, *c.layers);
  }
  if (measurements != nullptr && measurements->meta.gpu == c.gpu.name) {
    const BlockCase block = {c.model.name, plan.policy, c.workload};
    out.measured = find_block(*measurements, block);
    out.trace = find_trace(*measurements, block);
    if (out.measured || out.trace) out.replayed = simulate_replay(plan, c);
  }
  return out;
}

}  // namespace fuseline
