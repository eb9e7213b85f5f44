#include "model/config/hf_refused.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace fuseline {

namespace {

using Json = nlohmann::json;

// The value at which a field changes nothing. Null always does.
enum class Neutral : std::uint8_t { none, zero, one, at_most_one };

struct Refused {
  const char* field;
  Neutral neutral;
  const char* message;
};

constexpr const char* kExperts = "mixtures of experts are not predicted yet";
constexpr const char* kLatent = "multi-head latent attention is not predicted yet";
constexpr const char* kHeadNorm = "norms of queries and keys are not predicted yet";
constexpr const char* kSoftCap = "soft caps of scores and logits are not predicted yet";
constexpr const char* kPartialRope = "RoPE of a part of the head is not predicted yet";
constexpr const char* kPositions = "no positions but RoPE's (gpt2: learned ones) are predicted yet";
constexpr const char* kScales = "the computation has no such factor yet";
constexpr const char* kLayers = "layers that differ are not predicted yet";
constexpr const char* kParts = "models of several parts are not predicted yet";

// In all families. Where the field may be false, zero is false too.
constexpr Refused kRefused[] = {
    {"num_local_experts", Neutral::at_most_one, kExperts},
    {"num_experts", Neutral::at_most_one, kExperts},
    {"n_routed_experts", Neutral::at_most_one, kExperts},
    {"moe_num_experts", Neutral::at_most_one, kExperts},
    {"num_experts_per_tok", Neutral::at_most_one, kExperts},
    {"n_shared_experts", Neutral::zero, kExperts},
    {"moe_intermediate_size", Neutral::zero, kExperts},
    {"shared_expert_intermediate_size", Neutral::zero, kExperts},
    {"first_k_dense_replace", Neutral::zero, kExperts},
    {"moe_layer_freq", Neutral::zero, kExperts},
    {"kv_lora_rank", Neutral::zero, kLatent},
    {"q_lora_rank", Neutral::zero, kLatent},
    {"qk_nope_head_dim", Neutral::zero, kLatent},
    {"qk_rope_head_dim", Neutral::zero, kLatent},
    {"use_qk_norm", Neutral::zero, kHeadNorm},
    {"qk_norm", Neutral::zero, kHeadNorm},
    {"qk_layernorm", Neutral::zero, kHeadNorm},
    {"use_qk_layernorm", Neutral::zero, kHeadNorm},
    {"attn_logit_softcapping", Neutral::zero, kSoftCap},
    {"final_logit_softcapping", Neutral::zero, kSoftCap},
    {"attn_logit_softcap", Neutral::zero, kSoftCap},
    {"clip_qkv", Neutral::zero, "clipped queries, keys and values are not predicted yet"},
    {"partial_rotary_factor", Neutral::one, kPartialRope},
    {"rotary_pct", Neutral::one, kPartialRope},
    {"alibi", Neutral::zero, kPositions},
    {"use_alibi", Neutral::zero, kPositions},
    {"no_rope_layers", Neutral::none, kPositions},
    {"no_rope_layer_interval", Neutral::zero, kPositions},
    {"use_parallel_residual", Neutral::zero, "parallel attention and MLP are not predicted yet"},
    {"parallel_attn", Neutral::zero, "parallel attention and MLP are not predicted yet"},
    {"attention_chunk_size", Neutral::zero, "attention in chunks is not predicted yet"},
    {"num_kv_shared_layers", Neutral::zero, kLayers},
    {"cross_attention_layers", Neutral::none, kLayers},
    {"block_configs", Neutral::none, kLayers},
    {"num_nextn_predict_layers", Neutral::zero, "layers that predict further tokens are not built"},
    {"attention_multiplier", Neutral::none, kScales},
    {"embedding_multiplier", Neutral::one, kScales},
    {"residual_multiplier", Neutral::one, kScales},
    {"logits_scaling", Neutral::one, kScales},
    {"logit_scale", Neutral::one, kScales},
    {"is_encoder_decoder", Neutral::zero, kParts},
    {"add_cross_attention", Neutral::zero, kParts},
    {"text_config", Neutral::none, kParts},
    {"vision_config", Neutral::none, kParts},
    {"audio_config", Neutral::none, kParts},
};

// Fields that some of the families read; in the others the file says something that the
// architecture does not have, or has always.
struct FamilyRefused {
  const char* model_type;
  Refused field;
};
constexpr const char* kNoBias = "the architecture has no such bias";
constexpr const char* kNoWindow = "the architecture has no sliding window";
constexpr const char* kGptScale = "scores are scaled by 1 / sqrt(head width) alone";
constexpr FamilyRefused kFamilyRefused[] = {
    {"llama", {"sliding_window", Neutral::zero, kNoWindow}},
    {"gpt2", {"sliding_window", Neutral::zero, kNoWindow}},
    {"llama", {"bias", Neutral::zero, "attention_bias and mlp_bias say which biases there are"}},
    {"mistral", {"attention_bias", Neutral::zero, kNoBias}},
    {"mistral", {"mlp_bias", Neutral::zero, kNoBias}},
    {"qwen2", {"mlp_bias", Neutral::zero, kNoBias}},
    {"qwen2", {"attention_bias", Neutral::one, "queries, keys and values always have biases"}},
    {"qwen2", {"qkv_bias", Neutral::one, "queries, keys and values always have biases"}},
    {"qwen3", {"mlp_bias", Neutral::zero, kNoBias}},
    {"qwen3", {"attention_bias", Neutral::zero, "biases beside norms of heads are not built"}},
    {"gpt2", {"scale_attn_weights", Neutral::one, kGptScale}},
    {"gpt2", {"scale_attn_by_inverse_layer_idx", Neutral::zero, kGptScale}},
    {"gpt2", {"reorder_and_upcast_attn", Neutral::zero, "attention in fp32 alone is not built"}},
};

constexpr const char* kTypeFields[] = {"torch_dtype", "dtype"};
constexpr std::string_view kTypes[] = {"bfloat16", "float16", "float32", "bf16",
                                       "fp16",     "fp32",    "half",    "auto"};

bool is_neutral(const Json& value, Neutral neutral) {
  if (value.is_null()) return true;
  if (neutral == Neutral::none) return false;
  if (value.is_boolean()) return value.get<bool>() == (neutral == Neutral::one);
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  if (neutral == Neutral::zero) return number == 0;
  return neutral == Neutral::one ? number == 1 : number <= 1;
}

std::string allowed_text(Neutral neutral) {
  switch (neutral) {
    case Neutral::zero:
      return "0, false, null, or no such field";
    case Neutral::one:
      return "1, true, null, or no such field";
    case Neutral::at_most_one:
      return "at most 1, null, or no such field";
    case Neutral::none:
      break;
  }
  return "null, or no such field";
}

std::string written(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return "{...}";
  if (value.is_array()) return "[...]";
  return value.dump();
}

class Refusal {
 public:
  Refusal(const Json& object, std::string file) : object_(object), file_(std::move(file)) {}

  [[nodiscard]] const Json* find(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void fail(const std::string& field, const std::string& value,
                         const std::string& message, const std::string& allowed) const {
    throw InputError(
        {.file = file_, .field = field, .value = value, .message = message, .allowed = allowed});
  }
  void check(const Refused& rule) const {
    const Json* value = find(rule.field);
    if (value == nullptr || is_neutral(*value, rule.neutral)) return;
    fail(rule.field, written(*value), rule.message, allowed_text(rule.neutral));
  }

 private:
  const Json& object_;
  std::string file_;
};

void refuse_other_types(const Refusal& refusal) {
  for (const char* key : kTypeFields) {
    const Json* value = refusal.find(key);
    if (value == nullptr) continue;
    std::string name = written(*value);
    if (name.starts_with("torch.")) name.erase(0, std::string_view("torch.").size());
    if (std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes)) continue;
    refusal.fail(key, written(*value), "weights of this type are not predicted yet",
                 "bfloat16, float16, float32");
  }
}

// Nested in newer files; widths that other models have apart.
void refuse_other_heads(const Refusal& refusal, std::int64_t head_width) {
  if (const Json* rope = refusal.find("rope_parameters"); rope != nullptr && rope->is_object()) {
    const auto part = rope->find("partial_rotary_factor");
    if (part != rope->end() && !is_neutral(*part, Neutral::one)) {
      refusal.fail("rope_parameters.partial_rotary_factor", written(*part), kPartialRope,
                   allowed_text(Neutral::one));
    }
  }
  for (const char* key : {"v_head_dim", "rotary_dim", "head_dim"}) {
    const Json* value = refusal.find(key);
    if (value == nullptr ||
        (value->is_number() && value->get<double>() == static_cast<double>(head_width)))
      continue;
    refusal.fail(key, written(*value), "it differs from the width of the heads",
                 fmt::format("{}, null, or no such field", head_width));
  }
}

void refuse_other_positions(const Refusal& refusal, const std::string& model_type) {
  const char* key = "position_embedding_type";
  const Json* value = refusal.find(key);
  if (value == nullptr) return;
  const char* usual = model_type == "gpt2" ? "absolute" : "rope";
  if (!value->is_string() || value->get<std::string>() != usual) {
    refusal.fail(key, written(*value), kPositions, usual);
  }
}

}  // namespace

void refuse_unpredicted_fields(const Json& object, const std::string& model_type,
                               std::int64_t head_width, const std::string& file) {
  const Refusal refusal(object, file);
  refuse_other_types(refusal);
  for (const Refused& rule : kRefused) refusal.check(rule);
  for (const FamilyRefused& rule : kFamilyRefused) {
    if (model_type == rule.model_type) refusal.check(rule.field);
  }
  refuse_other_heads(refusal, head_width);
  refuse_other_positions(refusal, model_type);
}

}  // namespace fuseline
