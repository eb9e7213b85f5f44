#include <cmath>

#include "model/config/hf_families.h"

namespace fuseline {

namespace in_gemma3 {
namespace {

// The text model: five layers with a window, then one that sees everything.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_activation", {"gelu_pytorch_tanh"});
  ModelConfig c = read_llama_sizes(fields);
  if (fields.find("head_dim") == nullptr) c.d = 256;
  c.rope_theta = read_rope_theta(fields, 1e6);
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  c.values["score_scale"] = 1 / std::sqrt(positive(fields, "query_pre_attn_scalar", 256));
  const std::int64_t turn = fields.whole_or("sliding_window_pattern", 6);
  std::vector<bool> in_turn;
  for (std::int64_t i = 0; i < c.layers; ++i) in_turn.push_back((i + 1) % turn != 0);
  take_kinds_of_layers(c, "gemma3", read_layer_types(fields, c.layers).value_or(in_turn),
                       fields.whole_or("sliding_window", 4096));
  return c;
}

constexpr const char* kNoBias = "the architecture's biases are not built";
constexpr HfRefused kRefused[] = {{"attention_bias", HfNeutral::zero, kNoBias},
                                  {"mlp_bias", HfNeutral::zero, kNoBias},
                                  {"use_bidirectional_attention", HfNeutral::zero,
                                   "attention of all tokens to all is not built here"}};

}  // namespace
}  // namespace in_gemma3

constinit const HfFamily hf_families::gemma3{.model_type = "gemma3_text",
                                             .architecture = "Gemma3",
                                             .read = in_gemma3::read,
                                             .refused = in_gemma3::kRefused};

}  // namespace fuseline
