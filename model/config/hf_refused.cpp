#include "model/config/hf_refused.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/config/hf_family.h"
#include "model/config/hf_written.h"

namespace fuseline {

namespace {

using Json = nlohmann::json;

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
constexpr HfRefused kRefusedOfAll[] = {
    {"num_local_experts", HfNeutral::at_most_one, kExperts},
    {"num_experts", HfNeutral::at_most_one, kExperts},
    {"n_routed_experts", HfNeutral::at_most_one, kExperts},
    {"moe_num_experts", HfNeutral::at_most_one, kExperts},
    {"num_experts_per_tok", HfNeutral::at_most_one, kExperts},
    {"n_shared_experts", HfNeutral::zero, kExperts},
    {"moe_intermediate_size", HfNeutral::zero, kExperts},
    {"shared_expert_intermediate_size", HfNeutral::zero, kExperts},
    {"first_k_dense_replace", HfNeutral::zero, kExperts},
    {"moe_layer_freq", HfNeutral::zero, kExperts},
    {"kv_lora_rank", HfNeutral::zero, kLatent},
    {"q_lora_rank", HfNeutral::zero, kLatent},
    {"qk_nope_head_dim", HfNeutral::zero, kLatent},
    {"qk_rope_head_dim", HfNeutral::zero, kLatent},
    {"use_qk_norm", HfNeutral::zero, kHeadNorm},
    {"qk_norm", HfNeutral::zero, kHeadNorm},
    {"qk_layernorm", HfNeutral::zero, kHeadNorm},
    {"use_qk_layernorm", HfNeutral::zero, kHeadNorm},
    {"attn_logit_softcapping", HfNeutral::zero, kSoftCap},
    {"final_logit_softcapping", HfNeutral::zero, kSoftCap},
    {"attn_logit_softcap", HfNeutral::zero, kSoftCap},
    {"clip_qkv", HfNeutral::zero, "clipped queries, keys and values are not predicted yet"},
    {"partial_rotary_factor", HfNeutral::one, kPartialRope},
    {"rotary_pct", HfNeutral::one, kPartialRope},
    {"alibi", HfNeutral::zero, kPositions},
    {"use_alibi", HfNeutral::zero, kPositions},
    {"no_rope_layers", HfNeutral::none, kPositions},
    {"no_rope_layer_interval", HfNeutral::zero, kPositions},
    {"use_parallel_residual", HfNeutral::zero, "parallel attention and MLP are not predicted yet"},
    {"parallel_attn", HfNeutral::zero, "parallel attention and MLP are not predicted yet"},
    {"attention_chunk_size", HfNeutral::zero, "attention in chunks is not predicted yet"},
    {"num_kv_shared_layers", HfNeutral::zero, kLayers},
    {"cross_attention_layers", HfNeutral::none, kLayers},
    {"block_configs", HfNeutral::none, kLayers},
    {"num_nextn_predict_layers", HfNeutral::zero,
     "layers that predict further tokens are not built"},
    {"attention_multiplier", HfNeutral::none, kScales},
    {"embedding_multiplier", HfNeutral::one, kScales},
    {"residual_multiplier", HfNeutral::one, kScales},
    {"logits_scaling", HfNeutral::one, kScales},
    {"logit_scale", HfNeutral::one, kScales},
    {"is_encoder_decoder", HfNeutral::zero, kParts},
    {"add_cross_attention", HfNeutral::zero, kParts},
    {"text_config", HfNeutral::none, kParts},
    {"vision_config", HfNeutral::none, kParts},
    {"audio_config", HfNeutral::none, kParts},
};

constexpr const char* kTypeFields[] = {"torch_dtype", "dtype"};
constexpr std::string_view kTypes[] = {"bfloat16", "float16", "float32", "bf16",
                                       "fp16",     "fp32",    "half",    "auto"};

bool is_neutral(const Json& value, HfNeutral neutral) {
  if (value.is_null()) return true;
  if (neutral == HfNeutral::none) return false;
  if (value.is_boolean()) return value.get<bool>() == (neutral == HfNeutral::one);
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  if (neutral == HfNeutral::zero) return number == 0;
  return neutral == HfNeutral::one ? number == 1 : number <= 1;
}

std::string allowed_text(HfNeutral neutral) {
  switch (neutral) {
    case HfNeutral::zero:
      return "0, false, null, or no such field";
    case HfNeutral::one:
      return "1, true, null, or no such field";
    case HfNeutral::at_most_one:
      return "at most 1, null, or no such field";
    case HfNeutral::none:
      break;
  }
  return "null, or no such field";
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
  void check(const HfRefused& rule) const {
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

bool reads(const HfFamily& family, std::string_view field) {
  return std::find(family.reads.begin(), family.reads.end(), field) != family.reads.end();
}

// Nested in newer files; widths that other models have apart.
void refuse_other_heads(const Refusal& refusal, const HfFamily& family, std::int64_t head_width) {
  constexpr const char* kNested = "rope_parameters.partial_rotary_factor";
  if (const Json* rope = refusal.find("rope_parameters");
      rope != nullptr && rope->is_object() && !reads(family, kNested)) {
    const auto part = rope->find("partial_rotary_factor");
    if (part != rope->end() && !is_neutral(*part, HfNeutral::one)) {
      refusal.fail(kNested, written(*part), kPartialRope, allowed_text(HfNeutral::one));
    }
  }
  for (const char* key : {"v_head_dim", "rotary_dim", "head_dim"}) {
    const Json* value = refusal.find(key);
    if (value == nullptr || reads(family, key) ||
        (value->is_number() && value->get<double>() == static_cast<double>(head_width)))
      continue;
    refusal.fail(key, written(*value), "it differs from the width of the heads",
                 fmt::format("{}, null, or no such field", head_width));
  }
}

void refuse_other_positions(const Refusal& refusal, const HfFamily& family) {
  const char* key = "position_embedding_type";
  const Json* value = refusal.find(key);
  if (value == nullptr) return;
  if (!value->is_string() || value->get<std::string>() != family.positions) {
    refusal.fail(key, written(*value), kPositions, family.positions);
  }
}

}  // namespace

void refuse_unpredicted_fields(const Json& object, const HfFamily& family, std::int64_t head_width,
                               const std::string& file) {
  const Refusal refusal(object, file);
  refuse_other_types(refusal);
  for (const HfRefused& rule : kRefusedOfAll)
    if (!reads(family, rule.field)) refusal.check(rule);
  for (const HfRefused& rule : family.refused) refusal.check(rule);
  refuse_other_heads(refusal, family, head_width);
  refuse_other_positions(refusal, family);
}

}  // namespace fuseline
