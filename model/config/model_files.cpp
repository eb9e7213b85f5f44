#include "model/config/model_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/data_files.h"
#include "base/path_kind.h"
#include "base/toml_file.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/config/hf_config.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

constexpr IntegerRange kDimension{1, kLargestDimension};

// The value of a block's parameter: a whole number, a fraction, or true and false.
ParameterValue read_parameter(const TomlTable& table, const std::string& key,
                              const std::vector<std::string>& known, const std::string& block) {
  if (std::find(known.begin(), known.end(), key) == known.end())
    table.fail(key, fmt::format("is no parameter of the block '{}'", block),
               fmt::format("{}", fmt::join(known, ", ")), nearest_name(key, known));
  return table.number_or_flag(key, {0, kLargestDimension});
}

// The first files named a family, which says blocks, norm and activation.
struct Family {
  const char* name;
  const char *norm, *activation;
  const char *entry, *exit;
};
constexpr Family kFamilies[] = {
    {"llama", "rmsnorm", "swiglu", "embed", "head_rms_norm"},
    {"gpt", "layernorm", "gelu-tanh", "embed_positions", "head_layer_norm"}};

void read_family(const TomlTable& table, ModelConfig& c) {
  const std::string name = table.word("family", {kFamilies[0].name, kFamilies[1].name});
  const Family& family = name == kFamilies[0].name ? kFamilies[0] : kFamilies[1];
  const std::string norm = table.word("norm", {kFamilies[0].norm, kFamilies[1].norm});
  const std::string activation =
      table.word("activation", {kFamilies[0].activation, kFamilies[1].activation});
  if (norm != family.norm)
    table.fail("norm", fmt::format("is not the norm of the {} family", name), family.norm);
  if (activation != family.activation)
    table.fail("activation", fmt::format("is not the activation of the {} family", name),
               family.activation);
  if (name == "gpt" && table.has("rope_theta"))
    table.fail("rope_theta", "has no meaning in the gpt family, which has no RoPE", "leave it out");
  c.blocks = {{.block = name}};
  c.entry = family.entry;
  c.exit = family.exit;
}

// A path in a model's file starts at that file's folder.
BlockUse read_block_name(const TomlTable& table, const std::string& key) {
  BlockUse use;
  use.block = table.text(key);
  if (looks_like_path(use.block)) use.block = relative_to_file(use.block, table.file()).string();
  try {
    use.text = load_block_text(use.block);
    static_cast<void>(use.text->block());
  } catch (const InputError& error) {
    const InputProblem& p = error.problem();
    if (!p.file.empty()) throw;
    table.fail(key, p.message, p.allowed, p.nearest);
  }
  return use;
}

constexpr std::string_view kOfLayers[] = {"block",  "layers", "name", "decodes",
                                          "tokens", "entry",  "exit"};

// Tokens, entry and exit of a stack of its own.
void read_stack(const TomlTable& table, BlockUse& use) {
  use.tokens = table.text_or("tokens", "");
  for (const auto& [key, end] : {std::pair{"entry", &use.entry}, {"exit", &use.exit}}) {
    if (!table.has(key)) continue;
    static_cast<void>(read_block_name(table, key));
    *end = table.text(key);
    if (use.tokens.empty())
      table.fail(key, "belongs to a stack of layers with tokens of its own",
                 "tokens = the size that says how many, beside it");
  }
}

// [[blocks]] of a model of several kinds of layers: block, layers, name, and sizes of its own.
std::vector<BlockUse> read_blocks(const TomlTable& table) {
  std::vector<BlockUse> all;
  for (const TomlTable& one : table.tables("blocks")) {
    BlockUse use = read_block_name(one, "block");
    use.layers = one.whole("layers", {1, kMostLayers});
    use.name = one.text_or("name", "");
    use.decodes = one.flag_or("decodes", true);
    read_stack(one, use);
    const std::vector<std::string> known = parameter_names(*use.text);
    for (const std::string& key : one.keys()) {
      if (std::find(std::begin(kOfLayers), std::end(kOfLayers), key) != std::end(kOfLayers))
        continue;
      use.values[key] = read_parameter(one, key, known, use.label());
    }
    for (const BlockUse& other : all)
      if (other.label() == use.label())
        one.fail(one.has("name") ? "name" : "block", "names two kinds of layers",
                 "a name of its own for each");
    all.push_back(std::move(use));
  }
  return all;
}

// A folder of a model checkpoint holds config.json.
void refuse_checkpoint_folder(const fs::path& path) {
  if (kind_of_path(path) != PathKind::folder) return;
  if (kind_of_path(path / "config.json") == PathKind::missing) return;
  throw InputError({.file = path.string(),
                    .message = "is a folder",
                    .allowed = "a file",
                    .nearest = (path / "config.json").string()});
}

// "Qwen/Qwen3-8B": an owner and a model, and no file of that path.
bool is_hub_id(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string::npos || text[0] == '.' || text[0] == '~')
    return false;
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '-' || c == '_' ||
           c == '.';
  });
  if (!plain || text.ends_with(".toml") || text.ends_with(".json")) return false;
  return kind_of_path(text) == PathKind::missing &&
         kind_of_path(text.substr(0, slash)) == PathKind::missing;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The word of a model's source that has a slash in its middle: "config.json of OWNER/MODEL on ...".
std::vector<std::string> hub_ids(const std::string& source) {
  std::vector<std::string> ids;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find_first_of(" ;,", at), source.size());
    const std::string word = source.substr(at, end - at);
    if (word.find('/') != std::string::npos && !word.starts_with("transformer/"))
      ids.push_back(word);
    at = end + 1;
  }
  return ids;
}

std::string model_of_source(const std::string& id) {
  std::vector<std::string> known;
  for (const std::string& name : data_file_names("models")) {
    const fs::path path = find_data_file(name, {.field = "model", .folder = "models"});
    const TomlTable table = TomlTable::parse(read_input_file(path), path.string());
    for (const std::string& source : hub_ids(table.text_or("source", ""))) {
      if (lower(source) == lower(id)) return name;
      known.push_back(source);
    }
  }
  throw InputError({.field = "model",
                    .value = id,
                    .message = "no shipped model is made of this one on Hugging Face: save its "
                               "config.json and give its path",
                    .allowed = fmt::format("{}", fmt::join(known, ", ")),
                    .nearest = nearest_name(id, known)});
}

// By the file's ending; otherwise by its first character, which in JSON is '{'.
bool holds_json(const fs::path& path, const std::string& text) {
  if (path.extension() == ".json") return true;
  if (path.extension() == ".toml") return false;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) return c == '{';
  }
  return false;
}

}  // namespace

std::vector<std::string> model_names() { return data_file_names("models"); }

ModelConfig read_model(const TomlTable& table) {
  ModelConfig c;
  const bool of_family = table.has("family");
  if (of_family) {
    read_family(table, c);
  } else if (table.has("blocks")) {
    c.blocks = read_blocks(table);
  } else if (table.has("block")) {
    c.blocks = {read_block_name(table, "block")};
  } else {
    table.fail("block", "is missing: it says what a layer computes",
               fmt::format("{}, or a file", fmt::join(block_names(), ", ")));
  }
  std::vector<std::string> known{
      "name",       "title",           "source",           "layers",
      "rope_theta", "tied_embeddings", "pixels_per_token", "max_positions"};
  for (const char* key : {"D", "F", "H", "Hkv", "d", "V", "sliding_window", "norm_eps", "qkv_bias",
                          "out_bias", "mlp_bias"})
    known.emplace_back(key);
  if (of_family) {
    known.insert(known.end(), {"family", "norm", "activation"});
  } else {
    known.insert(known.end(), {table.has("blocks") ? "blocks" : "block", "entry", "exit"});
  }
  const std::size_t own = known.size();
  std::vector<std::shared_ptr<const BlockText>> texts;
  for (const BlockUse& use : c.blocks) texts.push_back(text_of(use));
  if (!of_family) {
    for (const auto& [key, end] : {std::pair{"entry", &c.entry}, {"exit", &c.exit}}) {
      if (table.has(key) && table.text(key) == "none") {
        end->clear();
      } else if (table.has(key)) {
        *end = table.text(key);
        texts.push_back(read_block_name(table, key).text);
      } else {
        texts.push_back(load_block_text(*end));
      }
    }
  }
  for (const auto& text : texts)
    for (const std::string& name : parameter_names(*text))
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  table.refuse_other_keys(known);
  const bool strict = of_family;  // these have all letters
  const auto dimension = [&](const char* key) {
    return strict || table.has(key) ? table.whole(key, kDimension) : 0;
  };
  c.name = table.text("name");
  c.title = table.text("title");
  static_cast<void>(table.text("source"));
  if (table.has("blocks") && !table.has("layers")) {
    for (const BlockUse& use : c.blocks) c.layers += use.layers;
  } else {
    c.layers = table.whole("layers", {1, kMostLayers});
  }
  c.D = dimension("D");
  c.F = dimension("F");
  c.H = dimension("H");
  c.Hkv = table.has("Hkv") ? table.whole("Hkv", kDimension) : c.H;
  if (c.H > 0 && !table.has("d") && c.D % c.H != 0) {
    table.fail("H", fmt::format("heads do not divide the width D = {} evenly", c.D),
               fmt::format("a divisor of {}, or give the head width d", c.D));
  }
  c.d = table.has("d") || c.H > 0 ? table.whole_or("d", kDimension, c.H > 0 ? c.D / c.H : 0) : 0;
  c.V = dimension("V");
  c.max_positions = strict ? table.whole("max_positions", kDimension)
                           : table.whole_or("max_positions", kDimension, kLargestDimension);
  c.sliding_window = table.whole_or("sliding_window", {0, kLargestDimension}, 0);
  c.pixels_per_token = table.whole_or("pixels_per_token", {0, 4096}, 0);
  c.norm_eps = strict ? table.real("norm_eps", {0, 1}) : table.real_or("norm_eps", {0, 1}, 1e-5);
  c.rope_theta = table.real_or("rope_theta", {1, 1e12}, c.rope_theta);
  c.qkv_bias = table.flag_or("qkv_bias", false);
  c.out_bias = table.flag_or("out_bias", false);
  c.mlp_bias = table.flag_or("mlp_bias", false);
  c.tied_embeddings = table.flag_or("tied_embeddings", false);
  for (std::size_t i = own; i < known.size(); ++i)
    if (table.has(known[i]))
      c.values[known[i]] = table.number_or_flag(known[i], {0, kLargestDimension});
  for (const BlockUse& use : c.blocks) {
    if (use.tokens.empty()) continue;
    const auto said = c.values.find(use.tokens);
    if (said == c.values.end() || !std::holds_alternative<std::int64_t>(said->second))
      throw InputError({.file = table.file(),
                        .field = "tokens",
                        .value = use.tokens,
                        .message = "is no size that the model says",
                        .allowed = "a size of one of its blocks, such as source_tokens"});
  }
  try {
    check_config(c, table.file());
  } catch (const InputError& error) {
    table.fail_at(error.problem());
  }
  return c;
}

namespace {

BlockUse use_of(const std::string& block) {
  BlockUse use{.block = block};
  use.text = load_block_text(block);
  static_cast<void>(use.text->block());
  return use;
}

// What is predicted or measured with another block is not taken for the model's own.
void name_after(ModelConfig& model, const std::string& block) {
  if (!model.title.empty()) model.title += ", block " + block;
  model.name += ":" + block;
}

// A block alone gives the model its sizes, so that nothing stands in the place of its defaults.
void take_defaults(ModelConfig& model, const ParameterValues& defaults) {
  const std::pair<const char*, std::int64_t*> sizes[] = {
      {"D", &model.D},     {"F", &model.F}, {"H", &model.H},
      {"Hkv", &model.Hkv}, {"d", &model.d}, {"sliding_window", &model.sliding_window}};
  for (const auto& [name, field] : sizes)
    if (const auto found = defaults.find(name); found != defaults.end())
      if (const auto* size = std::get_if<std::int64_t>(&found->second)) *field = *size;
  const std::pair<const char*, bool*> flags[] = {
      {"qkv_bias", &model.qkv_bias}, {"out_bias", &model.out_bias}, {"mlp_bias", &model.mlp_bias}};
  for (const auto& [name, field] : flags)
    if (const auto found = defaults.find(name); found != defaults.end())
      if (const auto* flag = std::get_if<bool>(&found->second)) *field = *flag;
  if (const auto found = defaults.find("norm_eps"); found != defaults.end())
    if (const auto* eps = std::get_if<double>(&found->second)) model.norm_eps = *eps;
}

// Sizes that the block needs and nobody says are told before anything is predicted.
void check_parameters(const ModelConfig& model) {
  const BlockUse& use = model.blocks.front();
  const ParameterValues values = block_values(model, use);
  const auto text = text_of(use);
  for (const Parameter& p : text->block().parameters)
    if (!p.absent && !values.contains(p.name))
      text->file().source->fail(
          p.at, {.value = p.name,
                 .message = fmt::format("the block needs it, and the model '{}' does not say it",
                                        model.name),
                 .allowed = "a model that says it, or a default here"});
}

}  // namespace

ModelConfig with_block(ModelConfig model, const std::string& block) {
  for (const BlockUse& use : model.blocks) {
    if (use.label() != block) continue;
    BlockUse chosen = use;
    model.layers = model.layers_of(use);
    chosen.layers = 0;
    chosen.tokens.clear();  // alone it has those that are asked for
    if (model.blocks.size() > 1) name_after(model, block);
    model.blocks = {std::move(chosen)};
    return model;
  }
  model.blocks = {use_of(block)};
  check_parameters(model);
  name_after(model, model.blocks.front().text->name());
  return model;
}

ModelConfig model_of_block(const std::string& block) {
  ModelConfig model;
  model.blocks = {use_of(block)};
  model.name = model.blocks.front().text->name();
  model.title = "block " + model.name;
  model.layers = 1;
  model.entry.clear();
  model.exit.clear();
  check_parameters(model);
  take_defaults(model, default_values(*model.blocks.front().text));
  check_config(model, block);
  return model;
}

ModelConfig load_model(const std::string& name, const BlockChange& change) {
  if (name.empty() && change.block.empty())
    throw InputError({.field = "model", .message = "is missing, and there is no block"});
  ModelConfig model = name.empty()           ? model_of_block(change.block)
                      : change.block.empty() ? load_model(name)
                                             : with_block(load_model(name), change.block);
  if (change.text.empty()) return model;
  const std::string file = text_of(model.blocks.front())->file().source->file;
  const auto text = BlockText::parse(change.text, file);
  static_cast<void>(text->block());
  for (BlockUse& use : model.blocks)
    if (text_of(use)->file().source->file == file) use.text = text;
  check_parameters(model);
  if (change.block.empty()) name_after(model, text->name());
  model.title += ", edited";
  return model;
}

std::shared_ptr<const BlockText> original_text(const std::string& model,
                                               const BlockChange& change) {
  return text_of(load_model(model, BlockChange{.block = change.block}).blocks.front());
}

ModelConfig load_model(const std::string& name_or_path) {
  if (is_hub_id(name_or_path)) return load_model(model_of_source(name_or_path));
  const fs::path path = find_data_file(
      name_or_path, {.field = "model", .folder = "models", .unlisted = "models/measured"});
  refuse_checkpoint_folder(path);
  const std::string text = read_input_file(path);
  if (holds_json(path, text)) return parse_hf_config(text, path.string());
  return read_model(TomlTable::parse(text, path.string()));
}

}  // namespace fuseline
