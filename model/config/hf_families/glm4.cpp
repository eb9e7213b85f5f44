#include "model/config/hf_families.h"

namespace fuseline {

namespace {

// Four norms a layer; neighbouring columns turn, half of each head.
ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_llama_sizes(fields);
  c.blocks = {{.block = "glm4"}};
  c.qkv_bias = fields.flag_or("attention_bias", false);
  double part = fields.real_or("partial_rotary_factor", 0.5);
  if (const nlohmann::json* rope = fields.find("rope_parameters");
      rope != nullptr && rope->is_object() && rope->contains("partial_rotary_factor") &&
      rope->at("partial_rotary_factor").is_number())
    part = rope->at("partial_rotary_factor").get<double>();
  const double columns = part * static_cast<double>(c.d);
  const auto rotated = columns >= 0 && columns <= static_cast<double>(c.d)
                           ? static_cast<std::int64_t>(columns)
                           : std::int64_t{0};
  if (rotated < 2 || rotated % 2 != 0)
    fields.fail("partial_rotary_factor", nlohmann::json(part),
                "the part of a head that turns has no pairs of columns", "0.5, or up to 1");
  c.values["rotated"] = rotated;
  return c;
}

constexpr const char* kReads[] = {"partial_rotary_factor", "rope_parameters.partial_rotary_factor"};
constexpr HfRefused kRefused[] = {
    {"mlp_bias", HfNeutral::zero, "the architecture has no such bias"},
    {"sliding_window", HfNeutral::zero, "the architecture has no sliding window"}};

}  // namespace

constinit const HfFamily hf_families::glm4{.model_type = "glm4",
                                           .architecture = "Glm4",
                                           .read = read,
                                           .reads = kReads,
                                           .refused = kRefused};

}  // namespace fuseline
