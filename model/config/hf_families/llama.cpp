#include "model/config/hf_families.h"

namespace fuseline {

namespace in_llama {
namespace {

ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_llama_sizes(fields, true);
  if (read_equal_layer_types(fields, c.layers) == true)
    fields.fail("layer_types", fields.find("layer_types")->front(),
                "the architecture has no sliding window", "full_attention in all layers");
  c.qkv_bias = c.out_bias = fields.flag_or("attention_bias", false);
  c.mlp_bias = fields.flag_or("mlp_bias", false);
  return c;
}

constexpr HfRefused kRefused[] = {
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"},
    {"bias", HfNeutral::zero, "attention_bias and mlp_bias say which biases there are"}};

}  // namespace
}  // namespace in_llama

constinit const HfFamily hf_families::llama{.model_type = "llama",
                                            .architecture = "Llama",
                                            .read = in_llama::read,
                                            .refused = in_llama::kRefused};

}  // namespace fuseline
