// Writing a file so that it is there whole or not at all, also after a loss of power.
#pragma once

#include <filesystem>
#include <string>

namespace fuseline {

// Writes the whole text or nothing: into a new file in the same folder, which then takes the name
// of `path`. Both reach the disk before this returns. What is there keeps its permissions.
//   a link          its target is rewritten, the link stays
//   pipe, device    nothing can take its place: the text is written to it
//   /dev/stdout     and other names of our own descriptors: the text is written there
// InputError (the path as file): the folder does not exist or cannot be written, `path` is a
// folder, a disk or a socket, is protected against writing, or is a pipe that nobody reads.
void replace_file(const std::filesystem::path& path, const std::string& text);

// The same InputError before the work whose result is to be written; `path` stays as it is.
void check_replaceable(const std::filesystem::path& path);

// Waits until the folder's list of names is on disk.
void sync_folder(const std::filesystem::path& folder);

}  // namespace fuseline
