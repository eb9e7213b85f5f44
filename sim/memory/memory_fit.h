// Whether a model's weights, caches and activations fit in the memory of one GPU.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "model/config/config.h"
#include "model/plan.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// The bytes that running the whole model takes. What drivers, libraries and allocators keep for
// themselves (0.5 GB and more) is not counted.
struct MemoryNeed {
  Bytes weights;      // every parameter once, with its scales; tied embeddings once
  Bytes training;     // train: gradients in the workload's type and what AdamW keeps
  Bytes kv_cache;     // forward and decode: keys and values of all layers
  Bytes activations;  // the most that is alive at once, with what train saves for the backward pass

  [[nodiscard]] Bytes total() const { return weights + training + kv_cache + activations; }
};

// Every weight once with the scales beside it, in the workload's formats; embeddings, the final
// norm and the LM head in its type, tied ones once.
Bytes weight_bytes(const ModelConfig& config, const Workload& workload);

// Parameters of the blocks, the embeddings, the final norm and the LM head.
std::int64_t parameter_count(const ModelConfig& config);

// 2·layers·B·S·Hkv·d elements, S = T in forward (the prompt's keys and values serve decode later);
// with a sliding window at most window + T - 1 of the S. Zero in train.
Bytes kv_cache_bytes(const ModelConfig& config, const Workload& workload);

// What the layers and the ends keep between kernels at the worst moment: a part of memory_need().
Bytes activations_at_once(const Plan& block, const ModelConfig& config, const Workload& workload);

// `block`: the plan of the model's first block under that workload; those of its other kinds of
// layers are made here, an encoder's over its own tokens. Activations: the most bytes in memory
// between two kernels of a block, or of the final norm and LM head under the same policy. In
// train, every other layer keeps what its forward pass saves for its backward pass. AdamW: two fp32
// moments a parameter and, where weights are 16-bit, an fp32 copy.
MemoryNeed memory_need(const Plan& block, const ModelConfig& config, const Workload& workload);

// The least number of such GPUs whose memories together hold the need, perfectly divided.
std::int64_t gpus_needed(Bytes need, const Gpu& gpu);

}  // namespace fuseline
