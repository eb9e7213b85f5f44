#include "sim/judge/standard_predictors.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/path_kind.h"
#include "sim/judge/refit.h"

namespace fuseline {

namespace {

// Judges each model by constants that were fitted without it, from files beside the measurements.
// Empty when there are none.
std::optional<Predictor> left_out_predictor(const Gpu& gpu, const Measurements& measurements,
                                            const std::vector<ModelConfig>& models) {
  namespace fs = std::filesystem;
  const fs::path path(measurements.path);
  const std::string folder =
      kind_of_path(path) == PathKind::folder ? path.string() : path.parent_path().string();
  std::vector<std::string> names;
  for (const ModelConfig& m : models) names.push_back(m.name);
  std::map<std::string, Gpu> gpus;
  for (const auto& [model, constants] : load_left_out_constants(folder, names)) {
    gpus.emplace(model, with_constants(gpu, constants));
  }
  if (gpus.empty()) return std::nullopt;
  const GpuFor gpu_for = [gpus = std::move(gpus)](const std::string& model) -> const Gpu& {
    const auto found = gpus.find(model);
    if (found == gpus.end()) throw Unpredicted{};
    return found->second;
  };
  return simulated_predictor("left out", Fidelity::hierarchy, models, gpu_for,
                             MeasuredTiles(measurements));
}

}  // namespace

std::vector<Predictor> standard_predictors(const Gpu& gpu, const Measurements& measurements) {
  const std::vector<ModelConfig> models = measured_models(measurements);
  const MeasuredTiles tiles(measurements);
  const auto shared = std::make_shared<const Gpu>(gpu);
  const GpuFor same = [shared](const std::string&) -> const Gpu& { return *shared; };
  std::vector<Predictor> columns = {
      simulated_predictor("roofline", Fidelity::roofline, models, same, tiles),
      simulated_predictor("hierarchy", Fidelity::hierarchy, models, same, tiles)};
  if (auto left_out = left_out_predictor(gpu, measurements, models)) {
    columns.push_back(std::move(*left_out));
  }
  return columns;
}

}  // namespace fuseline
