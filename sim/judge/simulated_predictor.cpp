// The predictor that simulates: plans of the policy a measurement's execution names.
#include <map>
#include <memory>
#include <utility>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/single_gemm.h"
#include "sim/gpu/plan_target.h"
#include "sim/judge/validation.h"

namespace fuseline {

bool has_gemm(const ModelConfig& c, const MeasuredGemm& gemm) {
  const std::int64_t n = gemm.n;
  const std::int64_t k = gemm.k;
  const std::int64_t up = c.activation == Activation::swiglu ? 2 * c.F : c.F;
  return (n == c.qkv_width() && k == c.D) || (n == c.D && k == c.H * c.d) ||
         (n == up && k == c.D) || (n == c.D && k == c.F);
}

std::string model_of_gemm(const MeasuredGemm& gemm, const std::vector<ModelConfig>& models) {
  for (const ModelConfig& model : models) {
    if (has_gemm(model, gemm)) return model.name;
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
                              GpuFor gpu_for) {
  const auto known = std::make_shared<const std::vector<ModelConfig>>(std::move(models));
  const auto config_of = [known](const std::string& model) {
    for (const ModelConfig& c : *known) {
      if (c.name == model) return c;
    }
    return load_model(model);
  };
  PredictBlock block = [=](const BlockCase& c) {
    const Gpu& gpu = gpu_for(c.model);
    return simulate(make_plan(c.execution, config_of(c.model), c.workload, plan_target(gpu)), gpu,
                    fidelity, {.replay = true, .runs = 2});
  };
  PredictGemm gemm = [=](const MeasuredGemm& g) {
    return estimate_library_gemm(
        {.m = g.m, .n = g.n, .k = g.k, .dtype = Dtype::bf16, .bias = false},
        gpu_for(model_of_gemm(g, *known)), fidelity);
  };
  return {.name = std::move(name), .block = std::move(block), .gemm = std::move(gemm)};
}

}  // namespace fuseline
