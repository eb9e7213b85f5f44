// Reads claims from TOML files.
#pragma once

#include <string>
#include <vector>

#include "base/toml_file.h"
#include "sim/judge/audit/claim.h"

namespace fuseline::audit {

// Fields of a claim's file: id, statement, kind, [source], [figure], [setting] (what the source
// states), [try] (values for what it leaves open), sites, not_testable, assumptions. Numbers of
// [figure] carry their units. InputError with file, line, field, value and nearest name: unknown or
// missing fields, wrong units, unknown models, GPUs or policies, values out of range.
Claim read_claim(const TomlTable& table);

// One claim from a file, or those of all *.toml files of a folder, by name. InputError as above; a
// folder without claims; two claims of one id.
std::vector<Claim> load_claims(const std::string& path);

// The folder of the shipped claims.
std::string shipped_claims();

}  // namespace fuseline::audit
