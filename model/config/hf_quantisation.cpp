#include "model/config/hf_quantisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"

namespace fuseline {
namespace {

using Json = nlohmann::json;

constexpr const char* kField = "quantization_config";
constexpr const char* kScheme = "kv_cache_scheme";
constexpr const char* kAlgorithm = "kv_cache_quant_algo";
constexpr const char* kOthers[] = {"compression_config", "quantization", "quant_config"};
// Modules that quantisers leave out, as this project does: embeddings, norms and the LM head.
constexpr const char* kEnds[] = {"lm_head", "embed_tokens", "model.embed_tokens", "model.norm"};

std::string written(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return "{...}";
  if (value.is_array()) return "[...]";
  return value.dump();
}

// "gptq, 4 bits", as far as the object says so; "{...}" otherwise.
std::string summary(const Json& value) {
  if (!value.is_object()) return written(value);
  const auto member = [&](const char* key) -> const Json* {
    const auto found = value.find(key);
    return found == value.end() || found->is_null() ? nullptr : &*found;
  };
  std::string text;
  for (const char* key : {"quant_method", "quant_algo", "format"}) {
    const Json* method = member(key);
    if (method == nullptr || !method->is_string() || !text.empty()) continue;
    text = method->get<std::string>();
  }
  std::string bits;
  for (const char* key : {"bits", "w_bit", "num_bits"}) {
    const Json* count = member(key);
    if (count != nullptr && count->is_number_integer()) bits = count->dump();
  }
  const auto is_set = [&](const char* key) {
    const Json* flag = member(key);
    return flag != nullptr && flag->is_boolean() && flag->get<bool>();
  };
  if (is_set("load_in_4bit") || is_set("_load_in_4bit")) bits = "4";
  if (is_set("load_in_8bit") || is_set("_load_in_8bit")) bits = "8";
  if (!bits.empty()) text += (text.empty() ? "" : ", ") + bits + " bits";
  return text.empty() ? "{...}" : text;
}

bool says_nothing(const Json& value) {
  return value.is_null() || (value.is_object() && value.empty());
}

// The members of quantization_config.
class Quantisation {
 public:
  Quantisation(const Json& object, std::string file) : object_(object), file_(std::move(file)) {}

  [[nodiscard]] const Json* find(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void fail(const std::string& key, const std::string& value,
                         const std::string& message, const std::string& allowed) const {
    throw InputError({.file = file_,
                      .field = fmt::format("{}.{}", kField, key),
                      .value = value,
                      .message = message,
                      .allowed = allowed});
  }

  [[nodiscard]] std::int64_t whole(const std::string& key) const {
    const Json* value = find(key);
    if (value == nullptr) fail(key, "", "the field is missing", "a whole number");
    if (!value->is_number_integer())
      fail(key, written(*value), "is not a whole number", "such one");
    if (value->is_number_unsigned() && value->get<std::uint64_t>() > kLargestDimension)
      fail(key, written(*value), "is too large", fmt::format("at most {}", kLargestDimension));
    return value->get<std::int64_t>();
  }
  [[nodiscard]] bool flag(const std::string& key, bool absent) const {
    const Json* value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) fail(key, written(*value), "is not a truth value", "true or false");
    return value->get<bool>();
  }

  // A name as --weights takes it, with the file's group: -1 is a whole row.
  [[nodiscard]] StoredWeight format(const std::string& name) const {
    const std::int64_t group = whole("group_size");
    StoredWeight weight = parse_stored_weight(name, kField, "");
    if (group == weight.group) return weight;
    if (group == -1) {
      weight.group = 0;
      return weight;
    }
    try {
      return parse_stored_weight(fmt::format("{}:{}", name, group), "group_size", "");
    } catch (const InputError& error) {
      fail("group_size", std::to_string(group), error.problem().message,
           "-1, or " + error.problem().allowed);
    }
  }

  // Layers that stay in 16 bits would be counted in few.
  void refuse_exceptions() const {
    for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
      const Json* value = find(key);
      if (value == nullptr) continue;
      if (!value->is_array()) fail(key, written(*value), "is not a list", "a list of module names");
      for (const Json& module : *value) {
        const std::string name = written(module);
        const bool is_end = std::any_of(std::begin(kEnds), std::end(kEnds),
                                        [&](const char* end) { return name == end; });
        if (!is_end)
          fail(key, name, "layers that keep 16 bits among others that do not are not predicted yet",
               fmt::format("{}", fmt::join(kEnds, ", ")));
      }
    }
  }

 private:
  const Json& object_;
  std::string file_;
};

StoredWeight read_awq(const Quantisation& q) {
  if (const std::int64_t bits = q.whole(q.find("w_bit") != nullptr ? "w_bit" : "bits"); bits != 4)
    q.fail("bits", std::to_string(bits), "AWQ of so many bits is not predicted", "4");
  return q.format(q.flag("zero_point", true) ? "int4-zero" : "int4");
}

StoredWeight read_gptq(const Quantisation& q) {
  const std::int64_t bits = q.whole("bits");
  if (bits != 4 && bits != 8)
    q.fail("bits", std::to_string(bits), "GPTQ of so many bits is not predicted", "4 or 8");
  if (q.flag("desc_act", false))
    q.fail("desc_act", "true",
           "columns in the order of their activations need gathers that are not predicted yet",
           "false, or no such field");
  const bool symmetric = q.flag("sym", true);
  if (bits == 8 && !symmetric)
    q.fail("sym", "false", "8 bits with zero points are not predicted", "true");
  return q.format(bits == 8 ? "int8" : symmetric ? "int4" : "int4-zero");
}

StoredWeight read_fp8(const Quantisation& q) {
  if (const Json* scheme = q.find("activation_scheme"); scheme != nullptr)
    q.fail("activation_scheme", written(*scheme),
           "activations in 8 bits are not predicted yet; a file without this field, or the model "
           "in 16 bits with --weights fp8-block, predicts the weights alone",
           "no such field");
  const Json* block = q.find("weight_block_size");
  if (block == nullptr) return parse_stored_weight("fp8", kField, "");
  if (*block != Json::array({128, 128}))
    q.fail("weight_block_size", block->dump(), "blocks of another size are not predicted",
           "[128, 128], or no such field");
  return parse_stored_weight("fp8-block", kField, "");
}

StoredWeight read_mxfp4(const Quantisation&) { return parse_stored_weight("mxfp4", kField, ""); }

// compressed-tensors says what is stored in few bits by groups of layers. Of a file that says it of
// the cache alone, the weights are in 16 bits.
bool stores_cache_alone(const Json& object) {
  const auto groups = object.find("config_groups");
  return object.at("quant_method") == "compressed-tensors" && object.contains(kScheme) &&
         !says_nothing(object.at(kScheme)) && (groups == object.end() || says_nothing(*groups));
}

// What a scheme of the cache must say to be e4m3 with one number for the tensor.
struct SchemeField {
  const char* key;
  Json value;
};
const std::vector<SchemeField>& fp8_scheme() {
  static const std::vector<SchemeField> fields = {
      {"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}};
  return fields;
}

// kv_cache_scheme (compressed-tensors) or kv_cache_quant_algo (ModelOpt). A file in which neither
// is there, or is null, keeps keys and values in 16 bits.
StoredCache read_cache(const Quantisation& q) {
  if (const Json* algorithm = q.find(kAlgorithm); algorithm != nullptr) {
    if (*algorithm != "FP8")
      q.fail(kAlgorithm, written(*algorithm), "a cache of this kind is not predicted",
             "FP8, or no such field");
    return parse_stored_cache("fp8", kField, "");
  }
  const Json* scheme = q.find(kScheme);
  if (scheme == nullptr) return {};
  if (!scheme->is_object()) q.fail(kScheme, written(*scheme), "is no scheme", "an object");
  for (const SchemeField& field : fp8_scheme()) {
    const auto found = scheme->find(field.key);
    const bool said = found != scheme->end() && !found->is_null();
    if (said ? *found != field.value : field.key != std::string("dynamic"))
      q.fail(fmt::format("{}.{}", kScheme, field.key), said ? written(*found) : "",
             "a cache of this kind is not predicted", field.value.dump());
  }
  return parse_stored_cache("fp8", kField, "");
}

struct Method {
  const char* name;
  StoredWeight (*read)(const Quantisation&);
};
constexpr Method kMethods[] = {
    {"awq", read_awq}, {"gptq", read_gptq}, {"fp8", read_fp8}, {"mxfp4", read_mxfp4}};

}  // namespace

Formats read_hf_formats(const Json& object, const std::string& file) {
  const auto refuse = [&](const char* field, const Json& value) {
    std::vector<std::string> names;
    for (const Method& method : kMethods) names.emplace_back(method.name);
    throw InputError({.file = file,
                      .field = field,
                      .value = summary(value),
                      .message = "quantised weights of this kind are not predicted; as bf16 they "
                                 "would be several times too large",
                      .allowed = fmt::format("quantization_config with quant_method {}, or no such "
                                             "field",
                                             fmt::join(names, ", "))});
  };
  for (const char* field : kOthers) {
    const auto found = object.find(field);
    if (found != object.end() && !says_nothing(*found)) refuse(field, *found);
  }
  const auto found = object.find(kField);
  if (found == object.end() || says_nothing(*found)) return {};
  if (!found->is_object() || !found->contains("quant_method")) refuse(kField, *found);
  if (stores_cache_alone(*found)) return {.cache = read_cache(Quantisation(*found, file))};
  const Json& method = found->at("quant_method");
  for (const Method& known : kMethods) {
    if (!method.is_string() || method.get<std::string>() != known.name) continue;
    const Quantisation quantisation(*found, file);
    quantisation.refuse_exceptions();
    return {.weights = known.read(quantisation), .cache = read_cache(quantisation)};
  }
  refuse(kField, *found);
  return {};
}

}  // namespace fuseline
