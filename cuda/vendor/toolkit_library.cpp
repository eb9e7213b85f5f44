#include "cuda/vendor/toolkit_library.h"

#include <cstdlib>
#include <filesystem>

namespace fuseline::cuda {

std::vector<std::string> toolkit_library(const std::string& stem,
                                         const std::vector<std::string>& versions) {
  std::vector<std::string> files = {"lib" + stem + ".so"};
  for (const std::string& version : versions) files.push_back("lib" + stem + ".so." + version);

  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0')
      roots.emplace_back(value);
  roots.emplace_back("/usr/local/cuda");

  std::vector<std::string> names;
  for (const std::string& root : roots)
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "extras/CUPTI/lib64"})
      for (const std::string& file : files)
        if (const auto path = std::filesystem::path(root) / folder / file;
            std::filesystem::exists(path))
          names.push_back(path.string());
  for (const std::string& version : versions) names.push_back("lib" + stem + ".so." + version);
  names.push_back(files.front());
  return names;
}

}  // namespace fuseline::cuda
