#include "model/config/hf_quantisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "model/config/hf_compressed_tensors.h"
#include "model/config/hf_quantisation_object.h"
#include "model/config/hf_written.h"

namespace fuseline {
namespace {

using Json = nlohmann::json;

constexpr const char* kField = kQuantisationField;
constexpr const char* kScheme = "kv_cache_scheme";
constexpr const char* kAlgorithm = "kv_cache_quant_algo";
constexpr const char* kOthers[] = {"compression_config", "quantization", "quant_config"};

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

Formats read_awq(const QuantisationObject& q) {
  if (const std::int64_t bits = q.whole(q.find("w_bit") != nullptr ? "w_bit" : "bits"); bits != 4)
    q.fail("bits", std::to_string(bits), "AWQ of so many bits is not predicted", "4");
  return {.weights = q.format(q.flag("zero_point", true) ? "int4-zero" : "int4")};
}

Formats read_gptq(const QuantisationObject& q) {
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
  return {.weights = q.format(bits == 8 ? "int8" : symmetric ? "int4" : "int4-zero")};
}

// Rows are scaled as the weights are: by token, or in groups beside blocks.
Formats read_fp8(const QuantisationObject& q) {
  const Json* block = q.find("weight_block_size");
  if (block != nullptr && *block != Json::array({128, 128}))
    q.fail("weight_block_size", block->dump(), "blocks of another size are not predicted",
           "[128, 128], or no such field");
  const char* const name = block == nullptr ? "fp8" : "fp8-block";
  Formats formats{.weights = parse_stored_weight(name, kField, "")};
  const Json* scheme = q.find("activation_scheme");
  if (scheme == nullptr) return formats;
  if (*scheme != "dynamic")
    q.fail("activation_scheme", written(*scheme),
           "scales of activations that were found before the run are not predicted",
           "dynamic, or no such field");
  formats.activations = parse_stored_activation(name, kField, "");
  return formats;
}

Formats read_mxfp4(const QuantisationObject&) {
  return {.weights = parse_stored_weight("mxfp4", kField, "")};
}

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
StoredCache read_cache(const QuantisationObject& q) {
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
  Formats (*read)(const QuantisationObject&);
};
constexpr Method kMethods[] = {{"awq", read_awq},
                               {"gptq", read_gptq},
                               {"fp8", read_fp8},
                               {"mxfp4", read_mxfp4},
                               {"compressed-tensors", read_compressed_tensors}};

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
  if (stores_cache_alone(*found)) return {.cache = read_cache(QuantisationObject(*found, file))};
  const Json& method = found->at("quant_method");
  for (const Method& known : kMethods) {
    if (!method.is_string() || method.get<std::string>() != known.name) continue;
    const QuantisationObject quantisation(*found, file);
    for (const char* list : {"modules_to_not_convert", "ignored_layers"})
      quantisation.refuse_exceptions(list);
    Formats formats = known.read(quantisation);
    formats.cache = read_cache(quantisation);
    return formats;
  }
  refuse(kField, *found);
  return {};
}

}  // namespace fuseline
