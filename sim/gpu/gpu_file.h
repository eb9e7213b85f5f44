// The fields of a GPU file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sim/gpu/gpu.h"

namespace fuseline {

class TomlTable;

// Every number is an inline table { value, unit, source, date, status }; all of them are required.
// status: datasheet, microbenchmark, derived, fitted or assumed; numbers in [calibration] are
// fitted.
// InputError: missing or unknown fields, a unit of another kind, values out of range or not finite,
// a base clock above the boost clock, a sustained bandwidth above the datasheet's.
// `architecture_of` finds the architecture that the file names.
using ArchitectureLoader = std::function<std::shared_ptr<const Architecture>(const std::string&)>;
Gpu read_gpu(const TomlTable& table, const ArchitectureLoader& architecture_of = load_architecture);

// A file of nothing but a [calibration] section: constants by name, whose ranges with_constants()
// checks. InputError as read_gpu.
std::map<std::string, double> read_constants(const TomlTable& table);

}  // namespace fuseline
