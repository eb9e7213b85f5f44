#include "model/config/hf_families.h"
#include "model/config/hf_qwen_window.h"

namespace fuseline {

namespace in_qwen2 {
namespace {

ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_llama_sizes(fields);
  c.sliding_window = read_qwen_window(fields, c.layers);
  c.qkv_bias = true;  // fixed in the architecture; the output projection has none
  return c;
}

constexpr const char* kAlways = "queries, keys and values always have biases";
constexpr HfRefused kRefused[] = {
    {"mlp_bias", HfNeutral::zero, "the architecture has no such bias"},
    {"attention_bias", HfNeutral::one, kAlways},
    {"qkv_bias", HfNeutral::one, kAlways}};

}  // namespace
}  // namespace in_qwen2

constinit const HfFamily hf_families::qwen2{.model_type = "qwen2",
                                            .architecture = "Qwen2",
                                            .read = in_qwen2::read,
                                            .refused = in_qwen2::kRefused};

}  // namespace fuseline
