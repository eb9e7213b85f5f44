#include <string>

#include "model/config/hf_families.h"

namespace fuseline {

namespace in_gptj {
namespace {

// Attention and MLP side by side; neighbouring columns turn, the first rotary_dim of each head.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "activation_function", {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"});
  ModelConfig c = read_gpt_sizes(fields);
  c.blocks = {{.block = "parallel"}};
  c.exit = "head_layer_norm";
  c.mlp_bias = true;
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  const std::int64_t rotated =
      fields.is_null("rotary_dim") ? c.d : fields.whole_or("rotary_dim", 64);
  if (rotated > c.d || rotated % 2 != 0)
    fields.fail("rotary_dim", nlohmann::json(rotated), "columns do not turn in pairs within a head",
                "an even number up to " + std::to_string(c.d));
  c.values["rotated"] = rotated;
  c.values["adjacent_pairs"] = true;
  return c;
}

constexpr const char* kReads[] = {"rotary_dim"};
constexpr HfRefused kRefused[] = {
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"},
    {"scale_attn_weights", HfNeutral::one, "scores are scaled by 1 / sqrt(head width) alone"}};

}  // namespace
}  // namespace in_gptj

constinit const HfFamily hf_families::gptj{.model_type = "gptj",
                                           .architecture = "GPTJ",
                                           .read = in_gptj::read,
                                           .spellings = kGptSpellings,
                                           .reads = in_gptj::kReads,
                                           .refused = in_gptj::kRefused};

}  // namespace fuseline
