#include "sim/block/whole_model.h"

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/custom_fusion.h"
#include "sim/gpu/plan_target.h"

namespace fuseline {

namespace {

void add(LayersEstimate& sum, const PlanEstimate& part, std::int64_t times) {
  sum.time += part.time * static_cast<double>(times);
  sum.flops += part.flops * times;
  sum.hbm_read += part.hbm_read * times;
  sum.hbm_write += part.hbm_write * times;
  sum.l2 += part.l2 * times;
  sum.launches += part.launches * times;
  sum.dynamic_energy += part.dynamic_energy * static_cast<double>(times);
}

}  // namespace

double LayersEstimate::tokens_per_second(const Workload& workload) const {
  return static_cast<double>(workload.rows()) / time.value();
}

LayersEstimate repeat_block(const PlanEstimate& block, std::int64_t layers) {
  LayersEstimate sum;
  sum.layers = layers;
  add(sum, block, layers);
  return sum;
}

// Under coda each block leaves the statistics of its output for the next norm, and the block's
// estimate counts them; the exit's own norm then stands for the first block's, which has no block
// before it.
LayersEstimate whole_model(const PlanEstimate& block, const ModelConfig& config,
                           const Workload& workload, const Gpu& gpu, Launching launching,
                           bool by_tensor) {
  LayersEstimate sum = repeat_block(block, config.layers_of(config.blocks.front()));
  const auto simulate_graph = [&](const Graph& graph, SimulationOptions options) {
    options.launching = launching;
    options.by_tensor = by_tensor;
    return simulate(make_end_plan(block.policy, graph, plan_target(gpu)), gpu, block.fidelity,
                    options);
  };
  if (block.policy == kCustomPolicy && config.blocks.size() > 1)
    throw InputError({.field = "policy",
                      .value = block.policy,
                      .message = "a custom plan is one block's, and the model has several kinds",
                      .allowed = "--block with one of them, or another policy"});
  // Every kind of layers in its own steady state, as the first one was predicted.
  for (std::size_t i = 1; i < config.blocks.size(); ++i) {
    const BlockUse& use = config.blocks[i];
    if (workload.phase == Phase::decode && !use.decodes) continue;
    const Workload work = workload_of(config, use, workload);
    const Plan plan = make_plan(block.policy, build_block(config, use, work), plan_target(gpu));
    add(sum, simulate(plan, gpu, block.fidelity, {.launching = launching, .by_tensor = by_tensor}),
        config.layers_of(use));
    sum.layers += config.layers_of(use);
    // A stack of its own has its own ends, as the first one below.
    if (!use.entry.empty())
      add(sum, simulate_graph(build_end(config, use.entry, work), {.replay = true, .runs = 1}), 1);
    if (!use.exit.empty())
      add(sum, simulate_graph(build_end(config, use.exit, work), {.replay = true, .runs = 2}), 1);
  }
  // The embedding starts cold; the exit finds what the last block left, and its weights are too
  // large to stay.
  if (!config.entry.empty()) {
    sum.entry = simulate_graph(build_entry(config, workload), {.replay = true, .runs = 1});
    sum.entry_name = config.V > 0 ? "embedding" : config.entry;
    add(sum, *sum.entry, 1);
  }
  if (!config.exit.empty()) {
    sum.exit = simulate_graph(build_exit(config, workload), {.replay = true, .runs = 2});
    sum.exit_name = config.V > 0 ? "final norm, LM head" : config.exit;
    add(sum, *sum.exit, 1);
  }
  return sum;
}

}  // namespace fuseline
