// A verification as JSON.
#pragma once

#include <string>

#include "sim/executor/verification.h"

namespace fuseline::executor {

// {"schema":"fuseline.verification/1", ...}: docs/cli.md lists the keys.
std::string verification_json(const ModelConfig& model, const Workload& workload, const Gpu& gpu,
                              const VerifyOptions& options, const Verification& result);

}  // namespace fuseline::executor
