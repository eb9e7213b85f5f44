// Writing results to a file that a user names.
#pragma once

#include <string>

namespace fuseline {

// replace_file() of base/output_file.h; its InputError names the option that named the file.
void write_file_atomically(const std::string& path, const std::string& text,
                           const std::string& option = "--output");

// The same InputError before the work whose result is to be written; `path` stays as it is.
void check_writable(const std::string& path, const std::string& option);

}  // namespace fuseline
