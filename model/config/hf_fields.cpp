#include "model/config/hf_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/config/hf_written.h"

namespace fuseline {

namespace {

using Json = nlohmann::json;

}  // namespace

HfFields::HfFields(Json object, std::string file)
    : object_(std::move(object)), file_(std::move(file)) {
  if (!object_.is_object()) {
    throw InputError({.file = file_,
                      .message = "the top level is not an object",
                      .allowed = "the fields of a config.json in braces"});
  }
  if (object_.empty()) throw InputError({.file = file_, .message = "the file holds no fields"});
}

const Json* HfFields::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool HfFields::is_null(const char* key) const {
  return object_.contains(key) && object_.at(key).is_null();
}

void HfFields::fail(const std::string& key, const Json& value, const std::string& message,
                    const std::string& allowed) const {
  throw InputError({.file = file_,
                    .field = key,
                    .value = written(value),
                    .message = message,
                    .allowed = allowed});
}

std::int64_t HfFields::whole(const char* key, std::int64_t most) const {
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

std::int64_t HfFields::whole_or(const char* key, std::int64_t absent) const {
  return find(key) == nullptr ? absent : whole(key);
}

double HfFields::real_or(const char* key, double absent) const {
  const Json* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_number()) fail(key, *value, "is not a number", "a number");
  return value->get<double>();
}

bool HfFields::flag_or(const char* key, bool absent) const {
  const Json* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail(key, *value, "is not a truth value", "true or false");
  return value->get<bool>();
}

std::string HfFields::text_or(const char* key, const std::string& absent) const {
  const Json* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_string()) fail(key, *value, "is not a text", "a text in quotes");
  return value->get<std::string>();
}

void require_activation(const HfFields& fields, const char* key,
                        const std::vector<std::string>& same) {
  const std::string name = fields.text_or(key, same.front());
  if (std::find(same.begin(), same.end(), name) != same.end()) return;
  fields.fail(key, Json(name), "unsupported activation", fmt::format("{}", fmt::join(same, ", ")));
}

std::int64_t head_width(const HfFields& fields, const char* heads_key, std::int64_t width,
                        std::int64_t heads) {
  if (width % heads == 0) return width / heads;
  fields.fail(heads_key, Json(heads), fmt::format("heads do not divide the width {} evenly", width),
              fmt::format("a divisor of {}", width));
}

double positive(const HfFields& fields, const char* key, double absent) {
  const double number = fields.real_or(key, absent);
  if (number > 0) return number;
  fields.fail(key, Json(number), "is not above 0", "a number above 0");
}

std::int64_t rotated_columns(const HfFields& fields, const char* key, double absent,
                             std::int64_t head_width) {
  constexpr const char* kNested = "partial_rotary_factor";
  double part = fields.real_or(key, absent);
  if (const Json* rope = fields.find("rope_parameters"); rope != nullptr && rope->is_object() &&
                                                         rope->contains(kNested) &&
                                                         rope->at(kNested).is_number())
    part = rope->at(kNested).get<double>();
  const double columns = part * static_cast<double>(head_width);
  const auto rotated = columns >= 0 && columns <= static_cast<double>(head_width)
                           ? static_cast<std::int64_t>(columns)
                           : std::int64_t{0};
  if (rotated < 2 || rotated % 2 != 0)
    fields.fail(key, Json(part), "the part of a head that turns has no pairs of columns",
                "0.5, or up to 1");
  return rotated;
}

double read_rope_theta(const HfFields& fields, double absent) {
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

std::optional<std::vector<bool>> read_layer_types(const HfFields& fields, std::int64_t layers) {
  const Json* types = fields.find("layer_types");
  if (types == nullptr) return std::nullopt;
  const std::string allowed = fmt::format("{} times full_attention or sliding_attention", layers);
  if (!types->is_array() || static_cast<std::int64_t>(types->size()) != layers) {
    fields.fail("layer_types", *types, "is not a list of one text a layer", allowed);
  }
  std::vector<bool> slides;
  for (const Json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      fields.fail("layer_types", type, "layers of this kind are not supported", allowed);
    }
    slides.push_back(type == "sliding_attention");
  }
  return slides;
}

std::optional<bool> read_equal_layer_types(const HfFields& fields, std::int64_t layers) {
  const auto slides = read_layer_types(fields, layers);
  if (!slides) return std::nullopt;
  if (std::find(slides->begin(), slides->end(), !slides->front()) != slides->end()) {
    fields.fail(
        "layer_types", *fields.find("layer_types"),
        "layers with and without a sliding window in one model are not supported",
        fmt::format("{} times full_attention, or {} times sliding_attention", layers, layers));
  }
  return slides->front();
}

ModelConfig read_llama_sizes(const HfFields& fields, bool old_files) {
  ModelConfig c;
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.F = fields.whole("intermediate_size");
  c.H = fields.whole("num_attention_heads");
  c.Hkv = old_files || fields.is_null("num_key_value_heads")
              ? fields.whole_or("num_key_value_heads", c.H)
              : fields.whole("num_key_value_heads");
  c.d = fields.find("head_dim") != nullptr ? fields.whole("head_dim")
                                           : head_width(fields, "num_attention_heads", c.D, c.H);
  c.V = fields.whole("vocab_size");
  c.max_positions = fields.whole("max_position_embeddings");
  c.norm_eps = fields.real_or("rms_norm_eps", 1e-6);
  c.rope_theta = read_rope_theta(fields);
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  return c;
}

void take_kinds_of_layers(ModelConfig& config, const std::string& block,
                          const std::vector<bool>& slides, std::int64_t window) {
  const auto local = static_cast<std::int64_t>(std::count(slides.begin(), slides.end(), true));
  const auto global = static_cast<std::int64_t>(slides.size()) - local;
  config.blocks.clear();
  if (local > 0)
    config.blocks.push_back(
        {.block = block, .layers = local, .name = "local", .values = {{"sliding_window", window}}});
  if (global > 0) config.blocks.push_back({.block = block, .layers = global, .name = "global"});
}

std::int64_t count_or(const HfFields& fields, const char* key, std::int64_t absent) {
  const nlohmann::json* value = fields.find(key);
  if (value == nullptr) return absent;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() == 0) return 0;
  return fields.whole(key);
}

void require_flag(const HfFields& fields, const char* key, bool wanted) {
  if (fields.flag_or(key, wanted) != wanted)
    fields.fail(key, *fields.find(key), "is not supported", wanted ? "true" : "false");
}

void require_count(const HfFields& fields, const char* key, std::int64_t wanted) {
  if (count_or(fields, key, wanted) != wanted)
    fields.fail(key, *fields.find(key), "is not supported", std::to_string(wanted));
}

void require_empty_list(const HfFields& fields, const char* key) {
  const nlohmann::json* list = fields.find(key);
  if (list != nullptr && !(list->is_array() && list->empty()))
    fields.fail(key, *list, "is not supported", "[]");
}

std::int64_t step_rank(const HfFields& fields, const char* key, std::int64_t width) {
  const nlohmann::json* rank = fields.find(key);
  if (rank == nullptr || *rank == "auto") return (width + 15) / 16;
  return fields.whole(key);
}

ModelConfig read_gpt_sizes(const HfFields& fields) {
  ModelConfig c;
  c.layers = fields.whole("n_layer", kMostLayers);
  c.D = fields.whole("n_embd");
  c.F = fields.whole_or("n_inner", 4 * c.D);
  c.H = fields.whole("n_head");
  c.Hkv = c.H;
  c.d = head_width(fields, "n_head", c.D, c.H);
  c.V = fields.whole("vocab_size");
  c.max_positions = fields.whole("n_positions");
  c.norm_eps = fields.real_or("layer_norm_epsilon", 1e-5);
  return c;
}

ModelConfig read_width_and_vocabulary(const HfFields& fields) {
  ModelConfig c;
  c.layers = fields.whole("num_hidden_layers", kMostLayers);
  c.D = fields.whole("hidden_size");
  c.V = fields.whole("vocab_size");
  c.max_positions = kLargestDimension;
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  return c;
}

void add_heads(ModelConfig& c, const HfFields& fields) {
  c.H = fields.whole("num_attention_heads");
  c.Hkv = fields.whole_or("num_key_value_heads", c.H);
  c.d = fields.find("head_dim") != nullptr ? fields.whole("head_dim")
                                           : head_width(fields, "num_attention_heads", c.D, c.H);
  c.max_positions = fields.whole("max_position_embeddings");
  c.norm_eps = fields.real_or("rms_norm_eps", 1e-6);
  c.rope_theta = read_rope_theta(fields);
}

}  // namespace fuseline
