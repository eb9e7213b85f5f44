// A text of programs with other sizes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace fuseline {

// The text with these numbers for the letters of its lines "size"; `used`: those that it has.
std::string resized(const std::string& text, const std::map<std::string, std::int64_t>& sizes,
                    std::set<std::string>* used = nullptr);

}  // namespace fuseline
