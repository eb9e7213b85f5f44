// Lists and ranges of sizes on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

// Sizes separated by commas, each a whole number or a range first:last:xF (times F each step) or
// first:last:+D (plus D): "1,2,4", "2048:16384:x2", "1,16:64:+16". A range ends with the last value
// that is not above `last`. InputError names the option and the item: not such a form, a size out
// of [least, most], a range that goes down or stands still, more than a thousand sizes, one twice.
std::vector<std::int64_t> parse_sizes(const std::string& option, const std::string& text,
                                      std::int64_t least, std::int64_t most);

}  // namespace fuseline
