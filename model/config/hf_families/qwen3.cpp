#include "model/config/hf_families.h"
#include "model/config/hf_qwen_window.h"

namespace fuseline {

namespace in_qwen3 {
namespace {

// Heads are 128 wide where the file is silent.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_llama_sizes(fields);
  if (fields.find("head_dim") == nullptr) c.d = 128;
  c.sliding_window = read_qwen_window(fields, c.layers);
  c.blocks = {{.block = "qwen3"}};
  return c;
}

constexpr HfRefused kRefused[] = {
    {"mlp_bias", HfNeutral::zero, "the architecture has no such bias"},
    {"attention_bias", HfNeutral::zero, "biases beside norms of heads are not built"}};

}  // namespace
}  // namespace in_qwen3

constinit const HfFamily hf_families::qwen3{.model_type = "qwen3",
                                            .architecture = "Qwen3",
                                            .read = in_qwen3::read,
                                            .refused = in_qwen3::kRefused};

}  // namespace fuseline
