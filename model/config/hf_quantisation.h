// What a Hugging Face config.json says of the number formats of its weights and of the cache.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/config/config.h"

namespace fuseline {

// Reads "quantization_config" of AWQ (bits, group_size, zero_point), GPTQ (bits, group_size, sym,
// desc_act), FP8 (weight_block_size, activation_scheme), MXFP4 and compressed-tensors, and beside
// them what they say of the cache: kv_cache_scheme (compressed-tensors, also alone) and
// kv_cache_quant_algo (ModelOpt). No format where the file has no such field.
// InputError naming the field for every other method, and for what these methods have that is not
// predicted: columns in the order of their activations, scales found before the run, layers left
// out.
Formats read_hf_formats(const nlohmann::json& object, const std::string& file);

}  // namespace fuseline
