// The letters in which descriptions of operators write the shapes of their operands.
#pragma once

#include <cstdint>
#include <string>

namespace fuseline {

// "N", or "2N" = twice N; "1" and "2" are numbers, without a name.
struct ShapeLetter {
  std::int64_t factor = 1;
  std::string name;
};

inline ShapeLetter shape_letter(const std::string& written) {
  if (written == "1" || written == "2") return {written == "1" ? 1 : 2, ""};
  if (written.front() == '2') return {2, written.substr(1)};
  return {1, written};
}

}  // namespace fuseline
