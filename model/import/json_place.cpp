#include "model/import/json_place.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline {

JsonPlace JsonPlace::at(const std::string& key) const {
  if (!value_.is_object()) fail("is no object", "an object with the field '" + key + "'");
  const auto found = value_.find(key);
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (found != value_.end()) return {*found, path, file_};
  throw InputError({.file = file_, .field = path, .message = "the field is missing"});
}

std::optional<JsonPlace> JsonPlace::find(const std::string& key) const {
  if (!value_.is_object()) fail("is no object", "an object");
  const auto found = value_.find(key);
  if (found == value_.end() || found->is_null()) return std::nullopt;
  return JsonPlace(*found, path_.empty() ? key : path_ + "." + key, file_);
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!value_.is_array()) fail("is no list", "a list in square brackets");
  std::vector<JsonPlace> out;
  out.reserve(value_.size());
  for (std::size_t i = 0; i < value_.size(); ++i)
    out.emplace_back(value_[i], fmt::format("{}[{}]", path_, i), file_);
  return out;
}

const std::string& JsonPlace::text() const {
  if (!value_.is_string()) fail("is no text", "a text in quotes");
  return value_.get_ref<const std::string&>();
}

std::int64_t JsonPlace::whole(std::int64_t least, std::int64_t most) const {
  const std::string allowed = fmt::format("a whole number from {} to {}", least, most);
  if (!value_.is_number_integer()) fail("is no whole number", allowed);
  const bool beyond = value_.is_number_unsigned() &&
                      value_.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const std::int64_t number = beyond ? INT64_MAX : value_.get<std::int64_t>();
  if (beyond || number < least || number > most) fail("is out of range", allowed);
  return number;
}

bool JsonPlace::truth() const {
  if (!value_.is_boolean()) fail("is no truth value", "true or false");
  return value_.get<bool>();
}

std::string JsonPlace::written() const {
  if (value_.is_object()) return "{...}";
  if (value_.is_array()) return "[...]";
  return value_.is_string() ? value_.get<std::string>() : value_.dump();
}

void JsonPlace::fail(const std::string& message, const std::string& allowed) const {
  throw InputError(
      {.file = file_, .field = path_, .value = written(), .message = message, .allowed = allowed});
}

}  // namespace fuseline
