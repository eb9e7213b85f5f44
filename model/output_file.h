// Writing a file so that it is there whole or not at all.
#pragma once

#include <filesystem>
#include <string>

namespace fuseline {

// Writes the whole text or nothing: into a file beside `path`, which then takes its name.
// InputError (the path as file) when the folder does not exist or cannot be written, or `path` is a
// folder.
void replace_file(const std::filesystem::path& path, const std::string& text);

}  // namespace fuseline
