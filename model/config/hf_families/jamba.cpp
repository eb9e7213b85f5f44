#include "model/config/hf_families.h"

namespace fuseline {

namespace in_jamba {
namespace {

// Which layers have attention and which have experts, each by a period and an offset.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  require_flag(fields, "mamba_proj_bias", false);
  require_flag(fields, "mamba_conv_bias", true);
  ModelConfig c = read_width_and_vocabulary(fields);
  c.H = fields.whole("num_attention_heads");
  c.Hkv = fields.whole_or("num_key_value_heads", c.H);
  c.d = c.D / c.H;
  c.F = fields.whole("intermediate_size");
  c.max_positions = fields.whole_or("max_position_embeddings", 262144);
  c.norm_eps = fields.real_or("rms_norm_eps", 1e-6);
  c.values["N"] = fields.whole_or("mamba_d_state", 16);
  c.values["inner"] = fields.whole_or("mamba_expand", 2) * c.D;
  c.values["rank"] = step_rank(fields, "mamba_dt_rank", c.D);
  c.values["taps"] = fields.whole_or("mamba_d_conv", 4);
  const std::int64_t attention_period = fields.whole_or("attn_layer_period", 8);
  const std::int64_t attention_offset = count_or(fields, "attn_layer_offset", 4);
  const std::int64_t expert_period = fields.whole_or("expert_layer_period", 2);
  const std::int64_t expert_offset = count_or(fields, "expert_layer_offset", 1);
  const std::int64_t E = fields.whole_or("num_experts", 16);
  const std::int64_t k = fields.whole_or("num_experts_per_tok", 2);
  std::int64_t layers[2][2] = {};
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const bool attends = i % attention_period == attention_offset;
    const bool experts = E > 1 && i % expert_period == expert_offset;
    ++layers[attends ? 1 : 0][experts ? 1 : 0];
  }
  c.blocks.clear();
  const char* const names[2][2] = {{"mamba-mlp", "mamba-experts"},
                                   {"attention-mlp", "attention-experts"}};
  for (const int attends : {0, 1})
    for (const int experts : {1, 0}) {
      if (layers[attends][experts] == 0) continue;
      ParameterValues values;
      if (attends == 1) values["attends"] = true;
      if (experts == 1) values["E"] = E, values["k"] = k;
      c.blocks.push_back({.block = "jamba",
                          .layers = layers[attends][experts],
                          .name = names[attends][experts],
                          .values = values});
    }
  return c;
}

constexpr const char* kReads[] = {"num_experts", "num_experts_per_tok"};

}  // namespace
}  // namespace in_jamba

constinit const HfFamily hf_families::jamba{.model_type = "jamba",
                                            .architecture = "Jamba",
                                            .read = in_jamba::read,
                                            .reads = in_jamba::kReads};

}  // namespace fuseline
