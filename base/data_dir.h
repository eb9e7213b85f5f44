// Where the program finds its data files: models, GPUs, scenarios, measurements.
#pragma once

#include <filesystem>
#include <optional>

namespace fuseline {

// The folder that holds models/ and gpus/. The first of these that exists:
//   1. the environment variable FUSELINE_DATA,
//   2. scenarios/ or share/fuseline/scenarios/ in any folder above the executable, so that a built,
//      a copied and an installed tree work,
//   3. the source tree that the program was built from, else where it was to be installed.
// Throws InputError when FUSELINE_DATA is set but holds no data, MissingError when nothing is
// found.
std::filesystem::path data_dir();

// The same search with every input given. An empty `executable` or `built_from` is left out.
std::filesystem::path find_data_dir(const std::optional<std::filesystem::path>& from_environment,
                                    const std::filesystem::path& executable,
                                    const std::filesystem::path& built_from);

}  // namespace fuseline
