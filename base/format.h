// Quantities as text for tables: fixed units, no suffixed numbers.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace fuseline {

std::string megabytes(Bytes bytes);           // 10^6 bytes, "412.3"
std::string in_microseconds(Seconds time);    // "1530.3"
std::string in_milliseconds(Seconds time);    // "1.530"
std::string signed_percent(double fraction);  // "+3.1 %"
std::string percent(double fraction);         // "3.1 %"
std::string times(double ratio);              // "1.23x"
std::string grouped(std::int64_t number);     // "12,288"

}  // namespace fuseline
