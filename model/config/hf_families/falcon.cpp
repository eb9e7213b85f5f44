#include "model/config/hf_families.h"

namespace fuseline {

namespace in_falcon {
namespace {

// Falcon-7B: attention and MLP side by side behind one norm, one head of keys and values. Files of
// the newer decoder have two norms.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "activation", {"gelu"});
  ModelConfig c;
  c.blocks = {{.block = "parallel"}};
  c.exit = "head_layer_norm";
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.F = fields.whole_or("ffn_hidden_size", 4 * c.D);
  c.H = fields.whole("num_attention_heads");
  c.Hkv = fields.flag_or("multi_query", true) ? 1 : c.H;
  c.d = head_width(fields, "num_attention_heads", c.D, c.H);
  c.V = fields.whole("vocab_size");
  c.max_positions = fields.whole_or("max_position_embeddings", 2048);
  c.norm_eps = fields.real_or("layer_norm_epsilon", 1e-5);
  c.rope_theta = read_rope_theta(fields);
  c.qkv_bias = c.out_bias = c.mlp_bias = fields.flag_or("bias", false);
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  c.values["exact_gelu"] = true;
  return c;
}

constexpr HfSpelling kSpellings[] = {{"layers", "num_hidden_layers"},
                                     {"D", "hidden_size"},
                                     {"F", "ffn_hidden_size"},
                                     {"H", "num_attention_heads"},
                                     {"Hkv", "multi_query"},
                                     {"d", "num_attention_heads"},
                                     {"V", "vocab_size"},
                                     {"max_positions", "max_position_embeddings"},
                                     {"norm_eps", "layer_norm_epsilon"}};
constexpr const char* kReads[] = {"parallel_attn"};
constexpr HfRefused kRefused[] = {
    {"parallel_attn", HfNeutral::one, "attention and MLP one after the other are not built"},
    {"new_decoder_architecture", HfNeutral::zero, "its two norms side by side are not built"},
    {"num_ln_in_parallel_attn", HfNeutral::one, "two norms side by side are not built"},
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"}};

}  // namespace
}  // namespace in_falcon

constinit const HfFamily hf_families::falcon{.model_type = "falcon",
                                             .architecture = "Falcon",
                                             .read = in_falcon::read,
                                             .spellings = in_falcon::kSpellings,
                                             .reads = in_falcon::kReads,
                                             .refused = in_falcon::kRefused};

}  // namespace fuseline
