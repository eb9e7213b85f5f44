// What stands at a path that a user named: told apart before anything opens it, since opening a
// pipe waits, and replacing a device loses it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace fuseline {

enum class PathKind : std::uint8_t { missing, regular, folder, pipe, device, other };

// Of what the path leads to, links followed. InputError with the system's reason where that cannot
// be told: no permission to look into a folder on the way, links in a circle, a name that is too
// long. A link to nothing is missing.
PathKind kind_of_path(const std::filesystem::path& path);

// What a chain of links leads to, whether that is there or not; the path itself when it is no link.
std::filesystem::path end_of_links(const std::filesystem::path& path);

// /dev/stdin, /dev/stdout, /dev/fd/N, /proc/self/fd/N, and links to them: the number of the
// descriptor, when it is open. These must not be opened by their name: that would forget the
// position, and fails for sockets.
std::optional<int> own_descriptor(const std::filesystem::path& path);

// Everything in the folder, sorted by path. InputError when it cannot be read.
std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder);

}  // namespace fuseline
