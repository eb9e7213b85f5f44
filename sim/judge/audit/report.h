// An audit as JSON (fuseline.audit/1; keys are only ever added) and as Markdown.
#pragma once

#include <string>

#include "sim/judge/audit/audit.h"

namespace fuseline::audit {

std::string audit_json(const Audit& audit);

// A table of all claims, then a section for each. `command`: what the text says it was made by.
std::string audit_markdown(const Audit& audit, const std::string& command);

// "1.02x to 3.71x", or "-" where nothing was predicted.
std::string predicted_text(const Audited& audited);
// Which GPUs were never calibrated on hardware; empty when all were, or checked.
std::string uncalibrated_text(const Audit& audit);
// Of which GPUs predictions were checked though nothing was fitted, and how well; empty for none.
std::string checked_text(const Audit& audit);
// "phase decode (a generated token), number format bf16"; empty where the source says it all.
std::string rests_on_text(const Verdict& verdict);
std::string limit_text(const Audited& audited);
// "plausible only if baseline unfused and tokens >= 8,192"
std::string verdict_text(const Verdict& verdict);

}  // namespace fuseline::audit
