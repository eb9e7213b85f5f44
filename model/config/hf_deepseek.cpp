#include "model/config/hf_deepseek.h"

#include <string>
#include <utility>

namespace fuseline {

// DeepSeek-V2 weighs by a softmax of all scores, V3 by sigmoids; groups of experts restrict only
// which ones are chosen, which is assumed here.
ModelConfig read_deepseek(const HfFields& fields, bool third) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  require_flag(fields, "attention_bias", false);
  require_count(fields, "moe_layer_freq", 1);
  ModelConfig c = read_width_and_vocabulary(fields);
  c.H = fields.whole("num_attention_heads");
  c.Hkv = c.H;
  c.d = head_width(fields, "num_attention_heads", c.D, c.H);
  c.max_positions = fields.whole("max_position_embeddings");
  c.norm_eps = fields.real_or("rms_norm_eps", 1e-6);
  c.rope_theta = read_rope_theta(fields);
  c.F = fields.whole("moe_intermediate_size");
  c.values["dn"] = fields.whole("qk_nope_head_dim");
  c.values["dr"] = fields.whole("qk_rope_head_dim");
  c.values["dv"] = fields.whole("v_head_dim");
  c.values["rkv"] = fields.whole("kv_lora_rank");
  c.values["rq"] = count_or(fields, "q_lora_rank", 0);
  const std::int64_t dense = count_or(fields, "first_k_dense_replace", 0);
  if (dense >= c.layers)
    fields.fail("first_k_dense_replace", *fields.find("first_k_dense_replace"),
                "leaves no layer with experts", std::to_string(c.layers - 1) + " at most");
  ParameterValues experts{{"E", fields.whole("n_routed_experts")},
                          {"k", fields.whole("num_experts_per_tok")},
                          {"shared", count_or(fields, "n_shared_experts", 0)}};
  const std::string scores = third ? "sigmoid" : "softmax";
  if (const std::string said = fields.text_or("scoring_func", scores); said != scores)
    fields.fail("scoring_func", nlohmann::json(said), "is not supported", scores);
  if (third) require_flag(fields, "norm_topk_prob", true);
  if (third)
    experts["sigmoid_scores"] = true;
  else if (!fields.flag_or("norm_topk_prob", false))
    experts["all_scores"] = true;
  const double factor = fields.real_or("routed_scaling_factor", 1.0);
  if (factor != 1) experts["factor"] = factor;
  c.blocks = {BlockUse{
      .block = "mla", .layers = c.layers - dense, .name = "experts", .values = std::move(experts)}};
  if (dense > 0)
    c.blocks.push_back(BlockUse{.block = "mla",
                                .layers = dense,
                                .name = "dense",
                                .values = {{"F", fields.whole("intermediate_size")}}});
  return c;
}

}  // namespace fuseline
