// quantization_config of a Hugging Face config.json: its members, and refusals that name them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/formats/stored_weight.h"

namespace fuseline {

inline constexpr const char* kQuantisationField = "quantization_config";

class QuantisationObject {
 public:
  // `object` must outlive it. `prefix`: of the members' names, behind quantization_config.
  QuantisationObject(const nlohmann::json& object, std::string file, std::string prefix = {});

  // Null where the member is absent or null.
  [[nodiscard]] const nlohmann::json* find(const std::string& key) const;
  // The member, which is an object too; refused where it is absent or none.
  [[nodiscard]] QuantisationObject member(const std::string& key) const;
  [[nodiscard]] std::int64_t whole(const std::string& key) const;
  [[nodiscard]] std::string word(const std::string& key) const;
  [[nodiscard]] bool flag(const std::string& key, bool absent) const;

  // A format as --weights takes it, with the file's group_size: -1 is a whole row.
  [[nodiscard]] StoredWeight format(const std::string& name) const;
  // Layers in these lists, which stay in 16 bits, would be counted in few.
  void refuse_exceptions(const char* list) const;

  [[noreturn]] void fail(const std::string& key, const std::string& value,
                         const std::string& message, const std::string& allowed) const;

 private:
  const nlohmann::json& object_;
  std::string file_, prefix_;
};

}  // namespace fuseline
