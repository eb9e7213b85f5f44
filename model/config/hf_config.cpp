#include "model/config/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/json_text.h"
#include "model/config/hf_quantisation.h"
#include "model/config/hf_refused.h"

namespace fuseline {
namespace {

using Json = nlohmann::json;

struct HfFamily {
  const char* model_type;
  const char* architecture;  // class names start with it, followed by one of kClassEndings
};

constexpr HfFamily kFamilies[] = {{"llama", "Llama"},
                                  {"mistral", "Mistral"},
                                  {"qwen2", "Qwen2"},
                                  {"qwen3", "Qwen3"},
                                  {"gpt2", "GPT2"}};
// "Llama" + "ForCausalLM" is ours; "Llama4ForCausalLM" and "Qwen2MoeForCausalLM" are other models.
constexpr std::string_view kClassEndings[] = {"For", "Model", "LMHead", "DoubleHeads"};

// The fields of the file's top level.
class Fields {
 public:
  Fields(Json object, std::string file) : object_(std::move(object)), file_(std::move(file)) {
    if (!object_.is_object()) {
      throw InputError({.file = file_,
                        .message = "the top level is not an object",
                        .allowed = "the fields of a config.json in braces"});
    }
    if (object_.empty()) throw InputError({.file = file_, .message = "the file holds no fields"});
  }

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const Json& object() const { return object_; }

  // Null is how these files write "not set".
  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] bool is_null(const char* key) const {
    return object_.contains(key) && object_.at(key).is_null();
  }

  [[noreturn]] void fail(const std::string& key, const Json& value, const std::string& message,
                         const std::string& allowed) const {
    throw InputError({.file = file_,
                      .field = key,
                      .value = written(value),
                      .message = message,
                      .allowed = allowed});
  }

  [[nodiscard]] std::int64_t whole(const char* key, std::int64_t most = kLargestDimension) const {
    const Json* value = find(key);
    const std::string allowed = fmt::format("a whole number from {} to {}", 1, most);
    if (value == nullptr) {
      throw InputError(
          {.file = file_, .field = key, .message = "the field is missing", .allowed = allowed});
    }
    if (!value->is_number_integer()) fail(key, *value, "is not a whole number", allowed);
    if (value->is_number_unsigned() &&
        value->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
      fail(key, *value, "is too large", allowed);
    }
    const auto number = value->get<std::int64_t>();
    if (number < 0) fail(key, *value, "is negative", allowed);
    if (number < 1) fail(key, *value, "is too small", allowed);
    return number;
  }
  [[nodiscard]] std::int64_t whole_or(const char* key, std::int64_t absent) const {
    return find(key) == nullptr ? absent : whole(key);
  }

  [[nodiscard]] double real_or(const char* key, double absent) const {
    const Json* value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_number()) fail(key, *value, "is not a number", "a number");
    return value->get<double>();
  }

  [[nodiscard]] bool flag_or(const char* key, bool absent) const {
    const Json* value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) fail(key, *value, "is not a truth value", "true or false");
    return value->get<bool>();
  }

  [[nodiscard]] std::string text_or(const char* key, const std::string& absent) const {
    const Json* value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_string()) fail(key, *value, "is not a text", "a text in quotes");
    return value->get<std::string>();
  }

 private:
  // Text that is not UTF-8 cannot get here: the parser refuses it.
  static std::string written(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_object()) return "{...}";
    if (value.is_array()) return "[...]";
    return value.dump();
  }

  Json object_;
  std::string file_;
};

std::string supported() {
  std::vector<std::string> words;
  for (const HfFamily& family : kFamilies) {
    words.push_back(fmt::format("{} ({}...)", family.model_type, family.architecture));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// The model_type that a class name such as "LlamaForCausalLM" belongs to, if it is one of ours.
std::optional<std::string> model_type_of(std::string_view architecture) {
  for (const HfFamily& family : kFamilies) {
    if (!architecture.starts_with(family.architecture)) continue;
    const std::string_view rest = architecture.substr(std::string_view(family.architecture).size());
    for (const std::string_view ending : kClassEndings) {
      if (rest.starts_with(ending)) return family.model_type;
    }
  }
  return std::nullopt;
}

// architectures decides where it is written, since it names the code that runs; model_type must
// agree.
std::string read_model_type(const Fields& fields) {
  const std::vector<std::string> types = hf_model_types();
  std::string type = fields.text_or("model_type", "");
  if (!type.empty() && std::find(types.begin(), types.end(), type) == types.end()) {
    const Json* written = fields.find("model_type");
    fields.fail("model_type", *written, "unsupported architecture", supported());
  }
  const Json* architectures = fields.find("architectures");
  if (architectures == nullptr || (architectures->is_array() && architectures->empty())) {
    if (!type.empty()) return type;
    throw InputError({.file = fields.file(),
                      .field = "model_type",
                      .message = "neither model_type nor architectures says what the model is",
                      .allowed = supported()});
  }
  if (!architectures->is_array() || !architectures->front().is_string()) {
    fields.fail("architectures", *architectures, "is not a list of texts", supported());
  }
  const Json& first = architectures->front();
  const std::optional<std::string> named = model_type_of(first.get_ref<const std::string&>());
  if (!named) fields.fail("architectures", first, "unsupported architecture", supported());
  if (!type.empty() && type != *named) {
    fields.fail("architectures", first, "disagrees with model_type = '" + type + "'", supported());
  }
  return *named;
}

void require_activation(const Fields& fields, const char* key,
                        const std::vector<std::string>& same) {
  const std::string name = fields.text_or(key, same.front());
  if (std::find(same.begin(), same.end(), name) != same.end()) return;
  fields.fail(key, Json(name), "unsupported activation", fmt::format("{}", fmt::join(same, ", ")));
}

std::int64_t head_width(const Fields& fields, const char* heads_key, std::int64_t width,
                        std::int64_t heads) {
  if (width % heads == 0) return width / heads;
  fields.fail(heads_key, Json(heads), fmt::format("heads do not divide the width {} evenly", width),
              fmt::format("a divisor of {}", width));
}

// Newer files write rope_parameters.rope_theta.
double read_rope_theta(const Fields& fields) {
  constexpr double absent = 10000.0;
  const Json* nested = fields.find("rope_parameters");
  if (fields.find("rope_theta") != nullptr || nested == nullptr || !nested->is_object()) {
    return fields.real_or("rope_theta", absent);
  }
  const auto found = nested->find("rope_theta");
  if (found == nested->end() || found->is_null()) return absent;
  if (!found->is_number()) {
    fields.fail("rope_parameters.rope_theta", *found, "is not a number", "a number");
  }
  return found->get<double>();
}

// Newer files say for each layer what its attention sees. True where all slide, false where none
// does; nothing where the file is silent.
std::optional<bool> read_layer_types(const Fields& fields, std::int64_t layers) {
  const Json* types = fields.find("layer_types");
  if (types == nullptr) return std::nullopt;
  const std::string allowed =
      fmt::format("{} times full_attention, or {} times sliding_attention", layers, layers);
  if (!types->is_array() || static_cast<std::int64_t>(types->size()) != layers) {
    fields.fail("layer_types", *types, "is not a list of one text a layer", allowed);
  }
  for (const Json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      fields.fail("layer_types", type, "layers of this kind are not supported", allowed);
    }
    if (type != types->front()) {
      fields.fail("layer_types", *types,
                  "layers with and without a sliding window in one model are not supported",
                  allowed);
    }
  }
  return types->front() == "sliding_attention";
}

// mistral: 4096 where the file is silent, all tokens where it says null. qwen2 and qwen3: only with
// use_sliding_window, and then in the layers from max_window_layers on, unless layer_types says
// which.
std::int64_t read_window(const Fields& fields, const std::string& type, std::int64_t layers) {
  const std::optional<bool> sliding = read_layer_types(fields, layers);
  if (sliding == false) return 0;
  if (sliding == true && type == "llama") {
    fields.fail("layer_types", fields.find("layer_types")->front(),
                "the architecture has no sliding window", "full_attention in all layers");
  }
  if (type == "mistral") {
    return fields.is_null("sliding_window") ? 0 : fields.whole_or("sliding_window", 4096);
  }
  const bool qwen = type == "qwen2" || type == "qwen3";
  if (!qwen || !fields.flag_or("use_sliding_window", false)) return 0;
  const Json* first = fields.find("max_window_layers");
  if (first != nullptr && !sliding) {
    if (!first->is_number_unsigned()) {
      fields.fail("max_window_layers", *first, "is not a whole number", "a whole number from 0");
    }
    const auto full_layers = first->get<std::uint64_t>();
    if (full_layers >= static_cast<std::uint64_t>(layers)) return 0;
    if (full_layers > 0) {
      fields.fail("max_window_layers", *first,
                  "layers with and without a sliding window in one model are not supported",
                  fmt::format("0, or {} (all layers)", layers));
    }
  }
  return fields.whole_or("sliding_window", 4096);
}

ModelConfig read_llama_like(const Fields& fields, const std::string& type) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c;
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.F = fields.whole("intermediate_size");
  c.H = fields.whole("num_attention_heads");
  // The first LLaMA files had no key/value heads of their own.
  c.Hkv = type == "llama" || fields.is_null("num_key_value_heads")
              ? fields.whole_or("num_key_value_heads", c.H)
              : fields.whole("num_key_value_heads");
  c.d = fields.find("head_dim") != nullptr ? fields.whole("head_dim")
        : type == "qwen3"                  ? 128
                                           : head_width(fields, "num_attention_heads", c.D, c.H);
  c.V = fields.whole("vocab_size");
  c.max_positions = fields.whole("max_position_embeddings");
  c.norm_eps = fields.real_or("rms_norm_eps", 1e-6);
  c.rope_theta = read_rope_theta(fields);
  c.sliding_window = read_window(fields, type, c.layers);
  if (type == "llama") {
    c.qkv_bias = fields.flag_or("attention_bias", false);
    c.out_bias = c.qkv_bias;
    c.mlp_bias = fields.flag_or("mlp_bias", false);
  } else if (type == "qwen2") {
    c.qkv_bias = true;  // fixed in the architecture; the output projection has none
  }
  if (type == "qwen3") c.blocks = {{.block = "qwen3"}};
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  return c;
}

ModelConfig read_gpt2(const Fields& fields) {
  require_activation(fields, "activation_function",
                     {"gelu_new", "gelu", "gelu_fast", "gelu_pytorch_tanh"});
  ModelConfig c;
  c.blocks = {{.block = "gpt"}};
  c.entry = "embed_positions";
  c.exit = "head_layer_norm";
  c.layers = fields.whole("n_layer", kMostLayers);
  c.D = fields.whole("n_embd");
  c.F = fields.whole_or("n_inner", 4 * c.D);
  c.H = fields.whole("n_head");
  c.Hkv = c.H;
  c.d = head_width(fields, "n_head", c.D, c.H);
  c.V = fields.whole("vocab_size");
  c.max_positions = fields.whole("n_positions");
  c.norm_eps = fields.real_or("layer_norm_epsilon", 1e-5);
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  return c;
}

// Our field names of check_config() as the file spells them.
std::string hf_field(const std::string& field, bool gpt2) {
  static const std::map<std::string, std::pair<const char*, const char*>> names = {
      {"layers", {"num_hidden_layers", "n_layer"}},
      {"D", {"hidden_size", "n_embd"}},
      {"F", {"intermediate_size", "n_inner"}},
      {"H", {"num_attention_heads", "n_head"}},
      {"Hkv", {"num_key_value_heads", "n_head"}},
      {"d", {"head_dim", "n_head"}},
      {"V", {"vocab_size", "vocab_size"}},
      {"max_positions", {"max_position_embeddings", "n_positions"}},
      {"norm_eps", {"rms_norm_eps", "layer_norm_epsilon"}}};
  const auto found = names.find(field);
  if (found == names.end()) return field;
  return gpt2 ? found->second.second : found->second.first;
}

// "meta-llama/Llama-2-7b-hf" and ".../Llama-2-7b-hf/config.json" both give "Llama-2-7b-hf".
std::string model_name(const Fields& fields, const std::string& type) {
  namespace fs = std::filesystem;
  std::string written = fs::path(fields.text_or("_name_or_path", "")).filename().string();
  if (!written.empty()) return written;
  const fs::path path(fields.file());
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return folder.empty() || folder == "." || folder == ".." ? type : folder;
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> types;
  for (const HfFamily& family : kFamilies) types.emplace_back(family.model_type);
  return types;
}

ModelConfig parse_hf_config(const std::string& text, const std::string& file) {
  const Fields fields(parse_json(text, file), file);
  const std::string type = read_model_type(fields);
  ModelConfig config = type == "gpt2" ? read_gpt2(fields) : read_llama_like(fields, type);
  refuse_unpredicted_fields(fields.object(), type, config.d, file);
  config.formats = read_hf_formats(fields.object(), file);
  config.name = model_name(fields, type);
  config.title = fmt::format("{} (Hugging Face {})", config.name, type);
  try {
    check_config(config, file);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.field = hf_field(problem.field, type == "gpt2");
    throw InputError(std::move(problem));
  }
  return config;
}

}  // namespace fuseline
