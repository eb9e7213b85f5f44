// A value of a JSON text, with the words that say where it stands: "nodes[12].args[0]".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fuseline {

class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, std::string path, const std::string& file)
      : value_(value), path_(std::move(path)), file_(file) {}

  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // InputError: no object, the field is missing.
  [[nodiscard]] JsonPlace at(const std::string& key) const;
  // Nothing where the field is missing or null.
  [[nodiscard]] std::optional<JsonPlace> find(const std::string& key) const;
  // InputError: no list.
  [[nodiscard]] std::vector<JsonPlace> items() const;

  // InputError: another kind of value.
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::int64_t whole(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] bool truth() const;

  [[noreturn]] void fail(const std::string& message, const std::string& allowed) const;

 private:
  [[nodiscard]] std::string written() const;

  const nlohmann::json& value_;
  std::string path_;
  const std::string& file_;
};

}  // namespace fuseline
