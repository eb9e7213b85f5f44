#include "model/config/hf_families.h"

namespace fuseline {

namespace in_glm4 {
namespace {

// Four norms a layer; neighbouring columns turn, half of each head.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_llama_sizes(fields);
  c.blocks = {{.block = "glm4"}};
  c.qkv_bias = fields.flag_or("attention_bias", false);
  c.values["rotated"] = rotated_columns(fields, "partial_rotary_factor", 0.5, c.d);
  return c;
}

constexpr const char* kReads[] = {"partial_rotary_factor", "rope_parameters.partial_rotary_factor"};
constexpr HfRefused kRefused[] = {
    {"mlp_bias", HfNeutral::zero, "the architecture has no such bias"},
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"}};

}  // namespace
}  // namespace in_glm4

constinit const HfFamily hf_families::glm4{.model_type = "glm4",
                                           .architecture = "Glm4",
                                           .read = in_glm4::read,
                                           .reads = in_glm4::kReads,
                                           .refused = in_glm4::kRefused};

}  // namespace fuseline
