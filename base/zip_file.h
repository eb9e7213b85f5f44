// One file out of a zip archive that a user names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline {

// Whether a regular file begins as zip archives do.
bool is_zip_file(const std::filesystem::path& path);

// The text of the first entry whose name is one of these or ends so behind a slash, the first name
// first. Nothing else of the archive is read. InputError: no archive, damaged, no such entry, one
// that is larger than `limit`.
std::string read_zip_entry(const std::filesystem::path& path, const std::vector<std::string>& names,
                           Bytes limit);

}  // namespace fuseline
