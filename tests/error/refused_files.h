// The files of this folder and what their errors must say.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace fuseline {

struct RefusedFile {
  std::string path;                // below tests/error
  std::vector<std::string> parts;  // each must stand in the message
};

std::vector<RefusedFile> refused_files();

// Names the test cases in the output.
inline void PrintTo(const RefusedFile& file, std::ostream* out) { *out << file.path; }

}  // namespace fuseline
