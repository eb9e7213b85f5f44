// The predictor that simulates: plans of the policy a measurement's execution names.
#include <map>
#include <memory>
#include <utility>

#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "sim/block/single_gemm.h"
#include "sim/gpu/plan_target.h"
#include "sim/judge/validation.h"

namespace fuseline {

Projections projections_of(const ModelConfig& c) {
  Projections out{.model = c.name, .shapes = {}};
  const Workload one{.phase = Phase::forward, .batch = 1, .seq = 1};
  for (const BlockUse& use : c.blocks) {
    const Graph block = build_block(c, use, one);
    for (const Op& op : block.ops()) {
      if (!is_gemm(op) || block.tensor(op.reads[1].tensor).role != Role::weight) continue;
      const GemmShape shape = gemm_shape(op);
      out.shapes.emplace(shape.N, shape.K);
    }
  }
  return out;
}

std::string model_of_gemm(const MeasuredGemm& gemm, const std::vector<Projections>& models) {
  for (const Projections& model : models) {
    if (model.have(gemm)) return model.model;
  }
  return {};
}

std::vector<ModelConfig> measured_models(const Measurements& measurements) {
  std::map<std::string, ModelConfig> models;
  for (const MeasuredBlock& b : measurements.blocks) models.try_emplace(b.block.model);
  for (const MeasuredTrace& t : measurements.traces) models.try_emplace(t.block.model);
  std::vector<ModelConfig> out;
  for (const auto& entry : models) out.push_back(load_model(entry.first));
  return out;
}

Predictor simulated_predictor(std::string name, Fidelity fidelity, std::vector<ModelConfig> models,
                              const GpuFor& gpu_for, MeasuredTiles tiles) {
  const auto known = std::make_shared<const std::vector<ModelConfig>>(std::move(models));
  std::vector<Projections> projections;
  for (const ModelConfig& model : *known) projections.push_back(projections_of(model));
  const auto config_of = [known](const std::string& model) {
    for (const ModelConfig& c : *known) {
      if (c.name == model) return c;
    }
    return load_model(model);
  };
  PredictBlock block = [=, ran = std::move(tiles)](const BlockCase& c) {
    const Gpu& gpu = gpu_for(c.model);
    Plan plan = make_plan(c.execution, config_of(c.model), c.workload, plan_target(gpu));
    ran.give_to(plan, c);
    return simulate(plan, gpu, fidelity,
                    {.replay = true, .rotating = true, .runs = 2, .launching = ran.launching()});
  };
  PredictGemm gemm = [=](const MeasuredGemm& g) {
    return estimate_library_gemm(
        {.m = g.m, .n = g.n, .k = g.k, .dtype = Dtype::bf16, .bias = false},
        gpu_for(model_of_gemm(g, projections)), fidelity);
  };
  return {.name = std::move(name), .block = std::move(block), .gemm = std::move(gemm)};
}

}  // namespace fuseline
