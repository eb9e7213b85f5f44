#include "model/config/hf_families.h"

namespace fuseline {

namespace in_bert {
namespace {

// An encoder whose norms stand behind its sums.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"gelu"});
  ModelConfig c;
  c.blocks = {{.block = "bert"}};
  c.entry = "embed_positions";
  c.exit = "";
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.F = fields.whole("intermediate_size");
  c.H = fields.whole("num_attention_heads");
  c.Hkv = c.H;
  c.d = head_width(fields, "num_attention_heads", c.D, c.H);
  c.V = fields.whole("vocab_size");
  c.max_positions = fields.whole("max_position_embeddings");
  c.norm_eps = fields.real_or("layer_norm_eps", 1e-12);
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  return c;
}

constexpr HfSpelling kSpellings[] = {{"layers", "num_hidden_layers"},
                                     {"D", "hidden_size"},
                                     {"F", "intermediate_size"},
                                     {"H", "num_attention_heads"},
                                     {"Hkv", "num_attention_heads"},
                                     {"d", "num_attention_heads"},
                                     {"V", "vocab_size"},
                                     {"max_positions", "max_position_embeddings"},
                                     {"norm_eps", "layer_norm_eps"}};
constexpr HfRefused kRefused[] = {
    {"is_decoder", HfNeutral::zero, "every token sees every token in the encoder that is built"},
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"}};

}  // namespace
}  // namespace in_bert

constinit const HfFamily hf_families::bert{.model_type = "bert",
                                           .architecture = "Bert",
                                           .read = in_bert::read,
                                           .spellings = in_bert::kSpellings,
                                           .refused = in_bert::kRefused,
                                           .positions = "absolute"};

}  // namespace fuseline
