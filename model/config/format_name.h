// Number formats are known by name.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

// InputError with `field`: none of the formats of `what` ("caches") has this name. Says those that
// there are, ahead of them `plain`, which means none, and the nearest.
[[noreturn]] void refuse_format(const std::string& text, const std::string& field,
                                const std::string& plain, std::vector<std::string> names,
                                const std::string& what);

}  // namespace fuseline
