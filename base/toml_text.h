// Texts as TOML writes them.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

// A basic string, in its quotes: quotes, backslashes and control characters become escapes.
std::string toml_text(const std::string& text);

// The same over several lines, in three quotes: line ends stay, so that a person can read the text.
std::string toml_lines(const std::string& text);

// A list of such strings, one a line when the list would not fit into one line of 80 characters.
std::string toml_list(const std::vector<std::string>& texts);

}  // namespace fuseline
