// JSON in and out: texts that others wrote, of any depth and with any bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fuseline {

// Arrays and objects within each other; our own files have six levels.
inline constexpr int kDeepestJson = 64;

// InputError: nested deeper than kDeepestJson, a syntax error, text that is no UTF-8 (line,
// column), a number beyond what a double holds.
nlohmann::json parse_json(const std::string& text, const std::string& file);

// Two spaces per level, a newline at the end. Bytes that are no UTF-8, as in the name of a file,
// come out as U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace fuseline
