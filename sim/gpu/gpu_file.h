// The fields of a GPU file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/gpu/gpu.h"

namespace fuseline {

class TomlTable;

// Every number is an inline table { value, unit, source, date, status }; all of them are required.
// status: datasheet, microbenchmark, derived or fitted; numbers in [calibration] are fitted.
// InputError: missing or unknown fields, a unit of another kind, values out of range or not finite,
// a base clock above the boost clock, a sustained bandwidth above the datasheet's.
Gpu read_gpu(const TomlTable& table);

// Year, year-month or year-month-day, as in "2024-03".
bool is_date(std::string_view text);

// A file of nothing but a [calibration] section: constants by name. InputError as read_gpu.
std::map<std::string, double> read_constants(const TomlTable& table);

}  // namespace fuseline
