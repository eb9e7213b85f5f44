#include "model/config/hf_families.h"

namespace fuseline {

namespace in_mistral {
namespace {

// A window of 4,096 tokens where the file is silent, all tokens where it says null.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_llama_sizes(fields);
  if (read_equal_layer_types(fields, c.layers) != false)
    c.sliding_window =
        fields.is_null("sliding_window") ? 0 : fields.whole_or("sliding_window", 4096);
  return c;
}

constexpr const char* kNoBias = "the architecture has no such bias";
constexpr HfRefused kRefused[] = {{"attention_bias", HfNeutral::zero, kNoBias},
                                  {"mlp_bias", HfNeutral::zero, kNoBias}};

}  // namespace
}  // namespace in_mistral

constinit const HfFamily hf_families::mistral{.model_type = "mistral",
                                              .architecture = "Mistral",
                                              .read = in_mistral::read,
                                              .refused = in_mistral::kRefused};

}  // namespace fuseline
