// The manual page fuseline(1).
#pragma once

#include <string>
#include <vector>

#include "cli/description.h"

namespace fuseline {

// In the language of man(7). `exit_status`: what the help says of it.
std::string man_page(const std::vector<CommandDescription>& commands,
                     const std::string& exit_status);

}  // namespace fuseline
