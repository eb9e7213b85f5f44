// The fields of a config.json's top level, and what several architectures read of them in the same
// way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/config/config.h"

namespace fuseline {

// Null is how these files write "not set". InputError with file, field, value and what is allowed.
class HfFields {
 public:
  HfFields(nlohmann::json object, std::string file);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const nlohmann::json& object() const { return object_; }
  [[nodiscard]] const nlohmann::json* find(const char* key) const;
  [[nodiscard]] bool is_null(const char* key) const;

  [[noreturn]] void fail(const std::string& key, const nlohmann::json& value,
                         const std::string& message, const std::string& allowed) const;

  [[nodiscard]] std::int64_t whole(const char* key, std::int64_t most = kLargestDimension) const;
  [[nodiscard]] std::int64_t whole_or(const char* key, std::int64_t absent) const;
  [[nodiscard]] double real_or(const char* key, double absent) const;
  [[nodiscard]] bool flag_or(const char* key, bool absent) const;
  [[nodiscard]] std::string text_or(const char* key, const std::string& absent) const;

 private:
  nlohmann::json object_;
  std::string file_;
};

// The first of `same` where the file is silent; all of them are the activation that is built.
void require_activation(const HfFields& fields, const char* key,
                        const std::vector<std::string>& same);
// width / heads, evenly.
std::int64_t head_width(const HfFields& fields, const char* heads_key, std::int64_t width,
                        std::int64_t heads);
// A number above 0.
double positive(const HfFields& fields, const char* key, double absent);
// Newer files write rope_parameters.rope_theta.
double read_rope_theta(const HfFields& fields, double absent = 10000.0);
// The columns of each head that turn: a part of its width, under the name or in rope_parameters.
std::int64_t rotated_columns(const HfFields& fields, const char* key, double absent,
                             std::int64_t head_width);
// A whole number that may be 0.
std::int64_t count_or(const HfFields& fields, const char* key, std::int64_t absent);
// Fields whose other values compute something that no block here does.
void require_flag(const HfFields& fields, const char* key, bool wanted);
void require_count(const HfFields& fields, const char* key, std::int64_t wanted);
void require_empty_list(const HfFields& fields, const char* key);
// Columns from which a Mamba layer makes its steps: a number, or "auto", a sixteenth of the width.
std::int64_t step_rank(const HfFields& fields, const char* key, std::int64_t width);
// Sizes under the names that GPT-2's file has; no biases.
ModelConfig read_gpt_sizes(const HfFields& fields);
// Layers, width and vocabulary, of models whose attention is not LLaMA's; and heads with rotated
// queries and keys.
ModelConfig read_width_and_vocabulary(const HfFields& fields);
void add_heads(ModelConfig& config, const HfFields& fields);
// What layer_types says of each layer: whether its attention slides. Nothing where the file is
// silent.
std::optional<std::vector<bool>> read_layer_types(const HfFields& fields, std::int64_t layers);
// Whether all layers slide, or none does; InputError where they differ.
std::optional<bool> read_equal_layer_types(const HfFields& fields, std::int64_t layers);

// Sizes under the names that LLaMA's file has; no window, no biases. `old_files`: as many key/value
// heads as heads where the file has none, as in the first files of LLaMA.
ModelConfig read_llama_sizes(const HfFields& fields, bool old_files = false);
// Layers in two kinds, "local" with the window and "global" without, as `slides` says of each.
void take_kinds_of_layers(ModelConfig& config, const std::string& block,
                          const std::vector<bool>& slides, std::int64_t window);

}  // namespace fuseline
