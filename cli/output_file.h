// Writing results to a file that a user names.
#pragma once

#include <string>

namespace fuseline {

// Writes the whole text or nothing: into a file beside `path`, which then takes its name.
// InputError when the folder does not exist or cannot be written, or `path` is a folder.
// `option`: the one that names the file.
void write_file_atomically(const std::string& path, const std::string& text,
                           const std::string& option = "--output");

// The same InputError before the work whose result is to be written.
void check_writable(const std::string& path, const std::string& option);

}  // namespace fuseline
