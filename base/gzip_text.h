// Texts that gzip packed, as tools write traces.
#pragma once

#include <string>
#include <string_view>

#include "base/units.h"

namespace fuseline {

// Whether the bytes begin as gzip's files do.
bool is_gzip(std::string_view bytes);

// The unpacked text; of several files behind each other, all. `file` is for messages. InputError:
// damaged, cut off, or more than `limit` bytes once unpacked.
std::string gunzip(std::string_view packed, const std::string& file, Bytes limit);

}  // namespace fuseline
