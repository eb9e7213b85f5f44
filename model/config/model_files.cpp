#include "model/config/model_files.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "base/data_files.h"
#include "base/path_kind.h"
#include "base/toml_file.h"
#include "model/config/hf_config.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

constexpr IntegerRange kDimension{1, kLargestDimension};

Family read_family(const TomlTable& table) {
  return table.word("family", {name_of(Family::llama), name_of(Family::gpt)}) ==
                 name_of(Family::llama)
             ? Family::llama
             : Family::gpt;
}

NormKind read_norm(const TomlTable& table) {
  return table.word("norm", {name_of(NormKind::rms_norm), name_of(NormKind::layer_norm)}) ==
                 name_of(NormKind::rms_norm)
             ? NormKind::rms_norm
             : NormKind::layer_norm;
}

Activation read_activation(const TomlTable& table) {
  return table.word("activation", {name_of(Activation::swiglu), name_of(Activation::gelu_tanh)}) ==
                 name_of(Activation::swiglu)
             ? Activation::swiglu
             : Activation::gelu_tanh;
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
  table.refuse_other_keys({"name",
                           "title",
                           "family",
                           "source",
                           "layers",
                           "D",
                           "F",
                           "H",
                           "Hkv",
                           "d",
                           "V",
                           "max_positions",
                           "sliding_window",
                           "norm",
                           "norm_eps",
                           "activation",
                           "rope_theta",
                           "qkv_bias",
                           "out_bias",
                           "mlp_bias",
                           "tied_embeddings"});
  ModelConfig c;
  c.name = table.text("name");
  c.title = table.text("title");
  c.family = read_family(table);
  static_cast<void>(table.text("source"));
  c.layers = table.whole("layers", {1, kMostLayers});
  c.D = table.whole("D", kDimension);
  c.F = table.whole("F", kDimension);
  c.H = table.whole("H", kDimension);
  c.Hkv = table.whole_or("Hkv", kDimension, c.H);
  if (!table.has("d") && c.D % c.H != 0) {
    table.fail("H", fmt::format("heads do not divide the width D = {} evenly", c.D),
               fmt::format("a divisor of {}, or give the head width d", c.D));
  }
  c.d = table.whole_or("d", kDimension, c.D / c.H);
  c.V = table.whole("V", kDimension);
  c.max_positions = table.whole("max_positions", kDimension);
  c.sliding_window = table.whole_or("sliding_window", {0, kLargestDimension}, 0);
  c.norm = read_norm(table);
  c.norm_eps = table.real("norm_eps", {0, 1});
  c.activation = read_activation(table);
  if (c.family == Family::gpt && table.has("rope_theta")) {
    table.fail("rope_theta", "has no meaning in the gpt family, which has no RoPE", "leave it out");
  }
  c.rope_theta = table.real_or("rope_theta", {1, 1e12}, c.rope_theta);
  c.qkv_bias = table.flag_or("qkv_bias", false);
  c.out_bias = table.flag_or("out_bias", false);
  c.mlp_bias = table.flag_or("mlp_bias", false);
  c.tied_embeddings = table.flag_or("tied_embeddings", false);
  try {
    check_config(c, table.file());
  } catch (const InputError& error) {
    table.fail_at(error.problem());
  }
  return c;
}

ModelConfig load_model(const std::string& name_or_path) {
  const fs::path path = find_data_file(name_or_path, {.field = "model", .folder = "models"});
  refuse_checkpoint_folder(path);
  const std::string text = read_input_file(path);
  if (holds_json(path, text)) return parse_hf_config(text, path.string());
  return read_model(TomlTable::parse(text, path.string()));
}

}  // namespace fuseline
