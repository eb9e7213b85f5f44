// The files of cuda/export/texts, which are part of the binary: the loader for Python and the
// launcher for C without its tables.
#pragma once

#include <string>
#include <string_view>

namespace fuseline::cuda {

// Empty: there is no such file.
std::string export_text(std::string_view file);

}  // namespace fuseline::cuda
