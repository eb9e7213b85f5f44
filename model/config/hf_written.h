// A value of a config.json as a message shows it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fuseline {

// Texts without their quotes; what is inside an object or a list is left out.
std::string written(const nlohmann::json& value);

}  // namespace fuseline
