// Texts of students and their programs, made fit for a terminal and for JSON.
#pragma once

#include <string>

namespace fuseline::lab {

// Valid UTF-8 without control characters but line ends: what a terminal would obey becomes a space,
// what is no UTF-8 a '?'.
std::string printable(const std::string& text);

}  // namespace fuseline::lab
