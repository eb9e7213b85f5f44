// Models by name, by TOML file, or by the config.json that Hugging Face puts beside the weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/config/config.h"

namespace fuseline {

class BlockText;
class TomlTable;

// A block in the place of a model's own, and how a person changed its text.
struct BlockChange {
  std::string block{};  // for with_block(); empty: the model's own
  std::string text{};   // in the place of the block's file; empty: as the file says
  friend bool operator==(const BlockChange&, const BlockChange&) = default;
};

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

// The model with its block changed; without a model (empty), the block alone. A changed text takes
// the place of its file in all kinds of layers that are of that file. InputError as the functions
// above; also neither a model nor a block, and what is wrong with the text, with its line.
ModelConfig load_model(const std::string& model, const BlockChange& change);
// The text of the block that is meant, as its file says. InputError as above.
std::shared_ptr<const BlockText> original_text(const std::string& model, const BlockChange& change);

// A model file's fields. Hkv defaults to H, d to D / H, rope_theta to 10000, sliding_window to 0,
// the biases and tied_embeddings to false; everything else is required.
ModelConfig read_model(const TomlTable& table);

}  // namespace fuseline
