#include <cmath>

#include "model/config/hf_families.h"

namespace fuseline {

namespace in_gemma2 {
namespace {

double cap(const HfFields& fields, const char* field, double absent) {
  return fields.is_null(field) ? 0.0 : fields.real_or(field, absent);
}

// Layers with a window and layers that see everything take turns.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_activation", {"gelu_pytorch_tanh"});
  ModelConfig c = read_llama_sizes(fields);
  if (fields.find("head_dim") == nullptr) c.d = 256;
  c.max_positions = fields.whole_or("max_position_embeddings", 8192);
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  c.values["softcap"] = cap(fields, "attn_logit_softcapping", 50.0);
  c.values["final_softcap"] = cap(fields, "final_logit_softcapping", 30.0);
  c.values["score_scale"] = 1 / std::sqrt(positive(fields, "query_pre_attn_scalar", 256));
  std::vector<bool> every_other;
  for (std::int64_t i = 0; i < c.layers; ++i) every_other.push_back(i % 2 == 0);
  take_kinds_of_layers(c, "gemma2", read_layer_types(fields, c.layers).value_or(every_other),
                       fields.whole_or("sliding_window", 4096));
  return c;
}

constexpr const char* kReads[] = {"attn_logit_softcapping", "final_logit_softcapping"};
constexpr const char* kNoBias = "the architecture has no such bias";
constexpr HfRefused kRefused[] = {{"attention_bias", HfNeutral::zero, kNoBias},
                                  {"mlp_bias", HfNeutral::zero, kNoBias},
                                  {"use_bidirectional_attention", HfNeutral::zero,
                                   "attention of all tokens to all is not built here"}};

}  // namespace
}  // namespace in_gemma2

constinit const HfFamily hf_families::gemma2{.model_type = "gemma2",
                                             .architecture = "Gemma2",
                                             .read = in_gemma2::read,
                                             .reads = in_gemma2::kReads,
                                             .refused = in_gemma2::kRefused};

}  // namespace fuseline
