// What config.json of DeepSeek-V2 and V3 have in common.
#pragma once

#include <span>

#include "model/config/hf_fields.h"

namespace fuseline {

// `third`: V3, whose gates come from sigmoids.
ModelConfig read_deepseek(const HfFields& fields, bool third);

// Fields of experts and of latent attention.
inline constexpr const char* kDeepseekReads[] = {
    "n_routed_experts",      "num_experts_per_tok", "n_shared_experts", "moe_intermediate_size",
    "first_k_dense_replace", "moe_layer_freq",      "kv_lora_rank",     "q_lora_rank",
    "qk_nope_head_dim",      "qk_rope_head_dim",    "v_head_dim",       "num_nextn_predict_layers"};

}  // namespace fuseline
