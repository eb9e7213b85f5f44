#include "model/config/hf_families.h"

namespace fuseline {

namespace in_gpt2 {
namespace {

ModelConfig read(const HfFields& fields) {
  require_activation(fields, "activation_function",
                     {"gelu_new", "gelu", "gelu_fast", "gelu_pytorch_tanh"});
  ModelConfig c = read_gpt_sizes(fields);
  c.blocks = {{.block = "gpt"}};
  c.entry = "embed_positions";
  c.exit = "head_layer_norm";
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  return c;
}

constexpr const char* kScale = "scores are scaled by 1 / sqrt(head width) alone";
constexpr HfRefused kRefused[] = {
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"},
    {"scale_attn_weights", HfNeutral::one, kScale},
    {"scale_attn_by_inverse_layer_idx", HfNeutral::zero, kScale},
    {"reorder_and_upcast_attn", HfNeutral::zero, "attention in fp32 alone is not built"}};

}  // namespace
}  // namespace in_gpt2

constinit const HfFamily hf_families::gpt2{.model_type = "gpt2",
                                           .architecture = "GPT2",
                                           .read = in_gpt2::read,
                                           .spellings = kGptSpellings,
                                           .refused = in_gpt2::kRefused,
                                           .positions = "absolute"};

}  // namespace fuseline
