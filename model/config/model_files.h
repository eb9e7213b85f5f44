// Models by name, by TOML file, or by the config.json that Hugging Face puts beside the weights.
#pragma once

#include <string>
#include <vector>

#include "model/config/config.h"

namespace fuseline {

class TomlTable;

// A name of model_names(), a TOML path, or a config.json path. The result has passed
// check_config(). InputError: unknown name (nearest), no file, syntax (line, column), unknown,
// missing or impossible fields, unsupported architecture.
ModelConfig load_model(const std::string& name_or_path);

// The shipped models, numbers in order of value.
std::vector<std::string> model_names();

// The model with that block in the place of its own: one of its kinds of layers by name ("local"),
// a name of scenarios/blocks, or a path. InputError: no such block, or sizes that it needs and the
// model does not say.
ModelConfig with_block(ModelConfig model, const std::string& block);
// A block alone, for files whose sizes all have defaults: one layer, nothing around it.
ModelConfig model_of_block(const std::string& block);

// A model file's fields. Hkv defaults to H, d to D / H, rope_theta to 10000, sliding_window to 0,
// the biases and tied_embeddings to false; everything else is required.
ModelConfig read_model(const TomlTable& table);

}  // namespace fuseline
