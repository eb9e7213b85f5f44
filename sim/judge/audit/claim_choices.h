// What a claim's file says of the settings in which it is to hold: [setting] and [try].
#pragma once

#include "base/toml_file.h"
#include "sim/judge/audit/claim.h"

namespace fuseline::audit {

inline constexpr double kMostPrice = 1e6;  // an hour, or for a million tokens

// InputError: unknown fields, models, GPUs, policies or formats, numbers out of range, a field that
// both tables have.
void read_choices(const TomlTable& table, Claim& claim);

// What a claim does not say and its file does not choose.
void fill_defaults(Claim& claim);

}  // namespace fuseline::audit
