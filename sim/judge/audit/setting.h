// The ways to fill in what a claim leaves open: a grid of settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/judge/audit/claim.h"

namespace fuseline::audit {

// The most settings that one claim may have.
inline constexpr std::size_t kMostSettings = 2000;

// Larger batches of more than this many tokens are left out in forward and train: the tensor cores
// are full long before, and the time a token takes stays the same.
inline constexpr std::int64_t kMostTokens = 32768;

struct Setting {
  std::string model, gpu;
  Workload workload;
  std::string baseline, policy;   // as the kind compares; empty where it has no use for one
  std::int64_t weight_bits = 16;  // fits_in_memory
  double price = 0;               // an hour; cost
  std::string level;              // bandwidth_ratio
};

// Every combination of the claim's choices, in the order of the choices. Combinations that cannot
// be are left out: a policy as its own baseline, one that does not train in train. Kind `other` has
// none. InputError: more than kMostSettings (the claim's file).
std::vector<Setting> settings_of(const Claim& claim);

// One thing that settings differ in, with its value here.
struct Dimension {
  std::string name;   // "GPU", "baseline", "tokens"
  std::string value;  // "h100-sxm", "2048"
  double number = 0;  // of numeric ones, to order values
  bool numeric = false;
};

// What the claim's kind looks at, in reading order, and always the same names in the same order for
// one claim.
std::vector<Dimension> dimensions(const Claim& claim, const Setting& setting);

// "h100-sxm, unfused, batch 1, 2,048 tokens"
std::string describe(const Claim& claim, const Setting& setting);

// Whether the kind compares a baseline with a policy.
bool compares(Kind kind);

}  // namespace fuseline::audit
