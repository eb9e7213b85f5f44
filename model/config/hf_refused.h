// What a Hugging Face config.json may say that changes the computation and that no block here has.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace fuseline {

// Refuses, by name, every field of the file's top level that makes the model another computation
// than the one read from it: quantised weights, types of weights that are no number format here,
// experts, latent attention, norms of queries and keys, soft caps, a partial RoPE, other positions,
// biases and windows that the architecture does not have. Null, false and the neutral value of a
// field pass. `head_width`: of the model as read. InputError: field, value as written, what is
// allowed.
void refuse_unpredicted_fields(const nlohmann::json& object, const std::string& model_type,
                               std::int64_t head_width, const std::string& file);

}  // namespace fuseline
