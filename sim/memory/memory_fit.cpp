#include "sim/memory/memory_fit.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/custom_fusion.h"
#include "model/operators/operator_table.h"
#include "sim/memory/activations.h"

namespace fuseline {

namespace {

constexpr std::int64_t kMomentBytes = 2 * 4;  // AdamW's two moments, fp32
constexpr std::int64_t kMasterBytes = 4;      // its fp32 copy of 16-bit weights

Bytes weights_of(const Graph& graph) {
  Bytes sum;
  for (const Tensor& t : graph.tensors()) {
    if (t.role == Role::weight) sum += t.bytes();
  }
  return sum;
}

// Weights of what stands around the layers, tied ones once: the head and the embeddings of every
// stack are then one matrix.
template <class Sum, class Count, class Tied>
Sum around_layers(const ModelConfig& config, const Workload& work, const Count& count,
                  const Tied& tied) {
  Sum sum(0);
  if (!config.entry.empty()) sum += count(build_entry(config, work));
  if (!config.exit.empty()) sum += count(build_exit(config, work));
  if (config.tied_embeddings) sum -= tied;
  for (const BlockUse& use : config.blocks) {
    // The encoder's tokens come out of the decoder's table.
    if (!use.exit.empty()) sum += count(build_end(config, use.exit, work));
    if (!use.entry.empty() && use.entry != config.entry)
      sum += count(build_end(config, use.entry, work));
  }
  return sum;
}

// Rows of the caches that the block reads or writes: a window leaves the others behind.
Bytes cached_by(const Graph& decode) {
  std::vector<Operand> touched;
  for (const Op& op : decode.ops())
    for (const auto* operands : {&op.reads, &op.writes})
      for (const Operand& o : *operands)
        if (decode.tensor(o.tensor).role == Role::cache) touched.push_back(o);
  return distinct_bytes(decode, touched);
}

}  // namespace

Bytes weight_bytes(const ModelConfig& config, const Workload& workload) {
  const Workload one{.phase = Phase::forward,
                     .batch = 1,
                     .seq = 1,
                     .context = 0,
                     .dtype = workload.dtype,
                     .formats = workload.formats};
  Bytes bytes(0);
  for (const BlockUse& use : config.blocks)
    bytes += weights_of(build_block(config, use, one)) * config.layers_of(use);
  return bytes +
         around_layers<Bytes>(config, one, weights_of,
                              checked_product<Bytes>(config.V, config.D, size_of(one.dtype)));
}

std::int64_t parameter_count(const ModelConfig& config) {
  const Workload one{.seq = 1};
  const auto numbers = [](const Graph& graph) {
    std::int64_t sum = 0;
    for (const Tensor& t : graph.tensors())
      if (t.role == Role::weight) sum += t.rows * t.cols;
    return sum;
  };
  std::int64_t count = 0;
  for (const BlockUse& use : config.blocks)
    count += numbers(build_block(config, use, one)) * config.layers_of(use);
  return count + around_layers<std::int64_t>(config, one, numbers, config.V * config.D);
}

Bytes kv_cache_bytes(const ModelConfig& config, const Workload& workload) {
  if (workload.phase == Phase::train) return Bytes(0);
  Workload one = workload;
  one.phase = Phase::decode;
  one.context = workload.kv_tokens();
  Bytes bytes(0);
  for (const BlockUse& use : config.blocks)
    if (keeps_cache(use)) bytes += cached_by(build_block(config, use, one)) * config.layers_of(use);
  return bytes;
}

Bytes activations_at_once(const Plan& block, const ModelConfig& config, const Workload& workload) {
  // Of every kind of layers, each over its own tokens; the first kind's plan is at hand.
  Bytes peak, saved, other_layers;
  for (std::size_t i = 0; i < config.blocks.size(); ++i) {
    const BlockUse& use = config.blocks[i];
    if (workload.phase == Phase::decode && !use.decodes) continue;
    const Activations one =
        i == 0 ? activations_of(block)
               : activations_of(make_end_plan(
                     block.policy, build_block(config, use, workload_of(config, use, workload))));
    saved += one.saved * config.layers_of(use);
    peak = std::max(peak, one.peak);
    // Above what all layers have saved, its own among it.
    other_layers = std::max(other_layers, one.peak - one.saved);
  }
  Activations at_exit;
  if (!config.exit.empty())
    at_exit = activations_of(make_end_plan(block.policy, build_exit(config, workload)));
  if (workload.phase != Phase::train) return std::max(peak, at_exit.peak);
  // In the loss every layer has saved; in a layer's backward pass all others still have, at most.
  return saved + std::max(at_exit.peak, other_layers);
}

MemoryNeed memory_need(const Plan& block, const ModelConfig& config, const Workload& workload) {
  MemoryNeed need;
  need.weights = weight_bytes(config, workload);
  need.kv_cache = kv_cache_bytes(config, workload);
  need.activations = activations_at_once(block, config, workload);
  if (workload.phase != Phase::train) return need;
  const std::int64_t element = 1 * size_of(workload.dtype);
  need.training =
      checked_product<Bytes>(parameter_count(config),
                             element + kMomentBytes + (element < kMasterBytes ? kMasterBytes : 0));
  return need;
}

std::int64_t gpus_needed(Bytes need, const Gpu& gpu) {
  return ceil_div(need.value(), gpu.hbm_capacity.value());
}

}  // namespace fuseline
