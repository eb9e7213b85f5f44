#include "model/config/hf_quantisation_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/config/config.h"
#include "model/config/hf_written.h"

namespace fuseline {

namespace {

using Json = nlohmann::json;

// Modules that quantisers leave out, as this project does: embeddings, norms and the LM head.
constexpr const char* kEnds[] = {"lm_head", "embed_tokens", "model.embed_tokens", "model.norm"};

}  // namespace

QuantisationObject::QuantisationObject(const Json& object, std::string file, std::string prefix)
    : object_(object), file_(std::move(file)), prefix_(std::move(prefix)) {}

const Json* QuantisationObject::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

QuantisationObject QuantisationObject::member(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_object())
    fail(key, value == nullptr ? "" : written(*value),
         value == nullptr ? "the field is missing" : "is no object", "an object");
  return {*value, file_, prefix_ + key + "."};
}

void QuantisationObject::fail(const std::string& key, const std::string& value,
                              const std::string& message, const std::string& allowed) const {
  throw InputError({.file = file_,
                    .field = fmt::format("{}.{}{}", kQuantisationField, prefix_, key),
                    .value = value,
                    .message = message,
                    .allowed = allowed});
}

std::int64_t QuantisationObject::whole(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "", "the field is missing", "a whole number");
  if (!value->is_number_integer()) fail(key, written(*value), "is not a whole number", "such one");
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > kLargestDimension)
    fail(key, written(*value), "is too large", fmt::format("at most {}", kLargestDimension));
  return value->get<std::int64_t>();
}

std::string QuantisationObject::word(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "", "the field is missing", "a word");
  if (!value->is_string()) fail(key, written(*value), "is not a word", "such one");
  return value->get<std::string>();
}

bool QuantisationObject::flag(const std::string& key, bool absent) const {
  const Json* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail(key, written(*value), "is not a truth value", "true or false");
  return value->get<bool>();
}

StoredWeight QuantisationObject::format(const std::string& name) const {
  const std::int64_t group = whole("group_size");
  StoredWeight weight = parse_stored_weight(name, kQuantisationField, "");
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

void QuantisationObject::refuse_exceptions(const char* list) const {
  const Json* value = find(list);
  if (value == nullptr) return;
  if (!value->is_array()) fail(list, written(*value), "is not a list", "a list of module names");
  for (const Json& module : *value) {
    const std::string name = written(module);
    const bool is_end = std::any_of(std::begin(kEnds), std::end(kEnds),
                                    [&](const char* end) { return name == end; });
    if (!is_end)
      fail(list, name, "layers that keep 16 bits among others that do not are not predicted yet",
           fmt::format("{}", fmt::join(kEnds, ", ")));
  }
}

}  // namespace fuseline
