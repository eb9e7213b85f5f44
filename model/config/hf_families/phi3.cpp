#include "model/config/hf_families.h"

namespace fuseline {

namespace in_phi3 {
namespace {

// LLaMA's block with Q, K and V, and gate and up, in one product each in the file too. All layers
// have the window.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_llama_sizes(fields);
  c.sliding_window = fields.whole_or("sliding_window", 0);
  if (read_equal_layer_types(fields, c.layers) == false) c.sliding_window = 0;
  return c;
}

constexpr const char* kNoBias = "the architecture has no such bias";
constexpr HfRefused kRefused[] = {{"attention_bias", HfNeutral::zero, kNoBias},
                                  {"mlp_bias", HfNeutral::zero, kNoBias}};

}  // namespace
}  // namespace in_phi3

constinit const HfFamily hf_families::phi3{.model_type = "phi3",
                                           .architecture = "Phi3",
                                           .read = in_phi3::read,
                                           .refused = in_phi3::kRefused};

}  // namespace fuseline
