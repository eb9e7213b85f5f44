#include "model/config/hf_written.h"

#include <nlohmann/json.hpp>

namespace fuseline {

// Text that is not UTF-8 cannot get here: the parser refuses it.
std::string written(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return "{...}";
  if (value.is_array()) return "[...]";
  return value.dump();
}

}  // namespace fuseline
