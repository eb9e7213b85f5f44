// What a Hugging Face config.json may say that changes the computation and that no block here has.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace fuseline {

struct HfFamily;

// The value at which a field changes nothing. Null always does.
enum class HfNeutral : std::uint8_t { none, zero, one, at_most_one };

struct HfRefused {
  const char* field;
  HfNeutral neutral;
  const char* message;
};

// Refuses, by name, every field of the file's top level that makes the model another computation
// than the one read from it: quantised weights, types of weights that are no number format here,
// experts, latent attention, norms of queries and keys, soft caps, a partial RoPE, other positions,
// and what the family refuses itself. Fields that the family reads pass; so do null, false and the
// neutral value of a field. `head_width`: of the model as read. InputError: field, value as
// written, what is allowed.
void refuse_unpredicted_fields(const nlohmann::json& object, const HfFamily& family,
                               std::int64_t head_width, const std::string& file);

}  // namespace fuseline
