#include "sim/training/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/blocks/block.h"
#include "sim/training/random.h"

namespace fuseline::training {

namespace {

void add_weights(const Graph& graph, std::int64_t layer, std::vector<Parameter>& all) {
  for (const Tensor& t : graph.tensors())
    if (t.role == Role::weight) all.push_back({layer, t.name, t.rows, t.cols, t.rows > 1});
}

double deviation_of(const Parameter& p, std::int64_t layers) {
  if (p.tensor == "w_lm_head") return 0.02;
  const bool ends_branch = p.tensor == "w_o" || p.tensor == "w_down";
  return ends_branch ? 0.05 / std::sqrt(2.0 * static_cast<double>(layers)) : 0.05;
}

}  // namespace

ModelGraphs training_graphs(const ModelConfig& config, const Workload& workload) {
  FUSELINE_ASSERT(workload.phase == Phase::train, config.name);
  return {build_entry(config, workload), build_block(config, workload),
          build_exit(config, workload)};
}

std::vector<Parameter> parameters_of(const ModelConfig& config, const ModelGraphs& graphs) {
  std::vector<Parameter> all;
  add_weights(graphs.entry, kEntry, all);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    add_weights(graphs.block, layer, all);
  add_weights(graphs.exit, kExit, all);
  if (config.tied_embeddings)
    std::erase_if(all, [](const Parameter& p) { return p.tensor == "w_lm_head"; });
  return all;
}

std::size_t parameter_of(const std::vector<Parameter>& parameters, std::int64_t layer,
                         const std::string& tensor) {
  const auto find = [&](std::int64_t where, const std::string& name) {
    return std::find_if(parameters.begin(), parameters.end(),
                        [&](const Parameter& p) { return p.layer == where && p.tensor == name; });
  };
  auto found = find(layer, tensor);
  if (found == parameters.end() && tensor == "w_lm_head") found = find(kEntry, "w_embed");
  FUSELINE_ASSERT(found != parameters.end(), "no parameter " + tensor);
  return static_cast<std::size_t>(found - parameters.begin());
}

Values<float> initial_values(const std::vector<Parameter>& parameters, std::int64_t layers,
                             std::uint64_t seed) {
  Random random(seed);
  Values<float> values;
  for (const Parameter& p : parameters) {
    std::vector<float> v(p.count());
    const double deviation = deviation_of(p, layers);
    const float constant = p.tensor.starts_with("w_") ? 1.0F : 0.0F;
    for (float& e : v) e = p.rows > 1 ? static_cast<float>(deviation * random.normal()) : constant;
    values.push_back(std::move(v));
  }
  return values;
}

}  // namespace fuseline::training
