// Texts in lines of limited width, for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fuseline {

// Characters, not bytes, of UTF-8 text without wide characters.
std::size_t display_width(const std::string& text);

// The text in lines of at most `width` characters, the first of at most `first`, broken at spaces
// where words allow it.
std::vector<std::string> broken(const std::string& text, std::size_t width, std::size_t first);
std::vector<std::string> broken(const std::string& text, std::size_t width);

}  // namespace fuseline
