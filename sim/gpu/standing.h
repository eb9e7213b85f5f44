// Whether a GPU's predictions were ever held against that GPU: its constants fitted on it, checked
// on it, or neither.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/gpu/gpu.h"

namespace fuseline {

class TomlTable;

enum class Standing : std::uint8_t {
  fitted,        // constants of the hierarchy model were fitted on this GPU
  checked,       // none was, but blocks were measured on it, and their errors are recorded
  uncalibrated,  // neither
};

Standing standing_of(const Gpu& gpu);

// "fitted", "checked", "uncalibrated".
const char* name_of(Standing);

// "18 blocks of per-operator, flash-attention and coda: mean error 3.1 %, worst 7.5 %".
std::string describe(const GpuCheck& check);

// What a report says above predictions of this GPU: "CHECKED: ..." or "UNCALIBRATED: ...", without
// a full stop; empty for a fitted one.
std::string standing_text(const Gpu& gpu);

// The tables [[checked]] of a GPU file: measurements, policies, blocks, mean_error, worst_error,
// source, date, and looked_at where blocks were. InputError: missing or unknown fields, values out
// of range, a mean above the worst.
std::vector<GpuCheck> read_checks(const TomlTable& table);

}  // namespace fuseline
