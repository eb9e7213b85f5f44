// Texts of students and of their programs, as they are shown and recorded.
#pragma once

#include <string>
#include <string_view>

#include "base/printable.h"

namespace fuseline::lab {

inline constexpr std::size_t kLongestShown = 16384;  // bytes

// Line breaks stay; what a terminal would obey, and what is no UTF-8, is escaped.
inline std::string shown(std::string_view text) { return printable_lines(text, kLongestShown); }

}  // namespace fuseline::lab
