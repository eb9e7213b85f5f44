#include "base/json_text.h"

#include <nlohmann/json.hpp>

#include "base/json_problem.h"

namespace fuseline {

using nlohmann::json;

json parse_json(const std::string& text, const std::string& file) {
  check_json_depth(text, file);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw_json_syntax(error.what(), error.byte, text, file);
  } catch (const json::exception&) {
    throw_json_number(file);  // only a number can be wrong in a well-formed text
  }
}

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fuseline
