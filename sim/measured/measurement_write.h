// Writing a measurement folder (block.csv, rivals.csv, kernels.csv, gemm.csv, meta.toml) in the
// form that load_measurements reads.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sim/measured/measurement.h"

namespace fuseline {

// What happens when the folder is already there.
enum class ExistingFolder : std::uint8_t {
  refuse,   // InputError
  replace,  // its measurement files go; InputError when it holds anything else
  extend,   // cases measured again take the place of the old ones, everything else stays
};

// Writes the folder whole or not at all: into a folder beside it, which then takes its name. Times
// are written to the picosecond, clocks to the kilohertz, power to the milliwatt.
// InputError (file, field, value, allowed): the folder is refused, its parent does not exist or
// cannot be written, there is nothing to write, a text cannot stand in a table or in TOML, or
// `extend` would put two GPUs, devices, drivers or toolkits under one meta.toml.
void write_measurements(const std::filesystem::path& folder, const Measurements& measurements,
                        ExistingFolder existing = ExistingFolder::refuse);

// The same InputError before the measuring whose result is to be written.
void check_measurement_folder(const std::filesystem::path& folder,
                              ExistingFolder existing = ExistingFolder::refuse);

// `base` with what was `added`; the same block, rival, trace or GEMM measured again is replaced in
// place.
// Of the meta, base's fields stay; date, clocks, command, version and counters name both, and notes
// are joined.
Measurements merged(Measurements base, const Measurements& added);

}  // namespace fuseline
