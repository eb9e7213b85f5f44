#include "model/config/hf_families.h"

namespace fuseline {

namespace in_qwen3_moe {
namespace {

ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  require_flag(fields, "attention_bias", false);
  require_flag(fields, "use_sliding_window", false);
  require_count(fields, "decoder_sparse_step", 1);
  require_empty_list(fields, "mlp_only_layers");
  ModelConfig c = read_width_and_vocabulary(fields);
  add_heads(c, fields);
  c.F = fields.whole("moe_intermediate_size");
  c.blocks = {{.block = "moe"}};
  c.values["E"] = fields.whole("num_experts");
  c.values["k"] = fields.whole("num_experts_per_tok");
  c.values["qk_norm"] = true;
  if (!fields.flag_or("norm_topk_prob", false)) c.values["all_scores"] = true;
  return c;
}

constexpr const char* kReads[] = {"num_experts", "num_experts_per_tok", "moe_intermediate_size"};

}  // namespace
}  // namespace in_qwen3_moe

constinit const HfFamily hf_families::qwen3_moe{.model_type = "qwen3_moe",
                                                .architecture = "Qwen3Moe",
                                                .read = in_qwen3_moe::read,
                                                .reads = in_qwen3_moe::kReads};

}  // namespace fuseline
