// Finding and reading small input files that a user names: by a name in a folder of data_dir(), or
// by a path.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline {

inline constexpr Bytes kLargestInputFile{std::int64_t{1} << 20};  // 1 MiB

// The whole text of a regular file, or of a pipe that the shell opened (/dev/stdin, <(command)).
// InputError: no such file, a folder, a device, a named pipe, not readable, empty, too large, a
// pipe from which nothing comes for as long as `patience`. Never waits otherwise.
std::string read_input_file(const std::filesystem::path& path, Bytes limit = kLargestInputFile,
                            std::chrono::milliseconds patience = std::chrono::seconds(60));

// Names of the files of that ending in a folder below data_dir() ("models"; "" is data_dir()
// itself), numbers within names in order of value: llama2-7b before llama2-13b.
std::vector<std::string> data_file_names(const std::string& folder,
                                         const std::string& ending = ".toml");

struct DataFileKind {
  std::string field;   // "model"
  std::string folder;  // "models"
  std::string ending = ".toml";
  std::string
      unlisted{};  // a folder whose files have names too, but are in no list: "models/measured"
};

// The file that `name_or_path` means: a name of data_file_names(), an alias (alias → name), or
// else, when it holds '/', ends as data files do or exists, a path. InputError with the nearest
// name when it is none of them.
std::filesystem::path find_data_file(const std::string& name_or_path, const DataFileKind& kind,
                                     const std::map<std::string, std::string>& aliases = {});

// A path written in `file`: relative ones start at the file's folder.
std::filesystem::path relative_to_file(const std::string& path, const std::filesystem::path& file);

// Whether the text is written as a path: holds '/', or ends in .toml, .json or .block.
bool looks_like_path(const std::string& text);

}  // namespace fuseline
