// Where the shared libraries of an installed CUDA toolkit lie.
#pragma once

#include <string>
#include <vector>

namespace fuseline::cuda {

// Paths of lib<stem>.so, numbered or not, that exist in $CUDA_HOME, $CUDA_PATH and /usr/local/cuda,
// CUPTI's folder included, the plain name before the newest number; then the names alone with each
// number of `versions`, which the loader looks for. For SharedLibrary.
std::vector<std::string> toolkit_library(const std::string& stem,
                                         const std::vector<std::string>& versions);

}  // namespace fuseline::cuda
