// Texts as TOML writes them.
#pragma once

#include <string>

namespace fuseline {

// A basic string, in its quotes: quotes, backslashes and control characters become escapes.
std::string toml_text(const std::string& text);

}  // namespace fuseline
