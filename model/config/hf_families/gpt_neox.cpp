#include "model/config/hf_families.h"

namespace fuseline {

namespace in_gpt_neox {
namespace {

constexpr HfSpelling kSpellings[] = {{"layers", "num_hidden_layers"},
                                     {"D", "hidden_size"},
                                     {"F", "intermediate_size"},
                                     {"H", "num_attention_heads"},
                                     {"Hkv", "num_attention_heads"},
                                     {"d", "num_attention_heads"},
                                     {"V", "vocab_size"},
                                     {"max_positions", "max_position_embeddings"},
                                     {"norm_eps", "layer_norm_eps"}};

// Attention and MLP each behind a norm of their own, side by side or one after the other; the first
// columns of each head turn. The product of Q, K and V has its rows head by head in the checkpoint:
// as many bytes and operations as in any other order.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"gelu"});
  ModelConfig c;
  c.blocks = {{.block = "neox"}};
  c.exit = "head_layer_norm";
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.F = fields.whole("intermediate_size");
  c.H = c.Hkv = fields.whole("num_attention_heads");
  c.d = head_width(fields, "num_attention_heads", c.D, c.H);
  c.V = fields.whole("vocab_size");
  c.max_positions = fields.whole_or("max_position_embeddings", 2048);
  c.norm_eps = fields.real_or("layer_norm_eps", 1e-5);
  c.rope_theta = fields.is_null("rotary_emb_base") ? read_rope_theta(fields)
                                                   : positive(fields, "rotary_emb_base", 10000.0);
  c.qkv_bias = c.out_bias = fields.flag_or("attention_bias", true);
  c.mlp_bias = true;
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  c.values["exact_gelu"] = true;
  c.values["parallel"] = fields.flag_or("use_parallel_residual", true);
  c.values["rotated"] = rotated_columns(fields, "rotary_pct", 0.25, c.d);
  return c;
}

constexpr const char* kReads[] = {"rotary_pct", "use_parallel_residual",
                                  "rope_parameters.partial_rotary_factor"};
constexpr HfRefused kRefused[] = {
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"}};

}  // namespace
}  // namespace in_gpt_neox

constinit const HfFamily hf_families::gpt_neox{.model_type = "gpt_neox",
                                               .architecture = "GPTNeoX",
                                               .read = in_gpt_neox::read,
                                               .spellings = in_gpt_neox::kSpellings,
                                               .reads = in_gpt_neox::kReads,
                                               .refused = in_gpt_neox::kRefused};

}  // namespace fuseline
