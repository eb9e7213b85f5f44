// The program's version, as `fuseline --version`, reports and the Python module say it.
#pragma once

namespace fuseline {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace fuseline
