// The page docs/reference/programs.md: the language of programs, from the walks of its lines.
#pragma once

#include <string>

namespace fuseline {

// `made`: the paragraph that names the command.
std::string programs_page(const char* made);

}  // namespace fuseline
