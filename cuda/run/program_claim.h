// Whether what was measured may be called a speed: the evidence about a program, and what is wrong
// with it. Needs no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/check_results.h"

namespace fuseline::cuda {

// One run on inputs of their own.
struct SeedRun {
  std::uint64_t seed = 0;
  std::uint64_t bits = 0;  // a fingerprint of all that the programs stored
  CheckedResults check;    // against fp64
};

struct ClaimEvidence {
  std::vector<SeedRun> seeds{};  // at least three
  Seconds least;                 // the shortest of the timed runs
  Flops flops;                   // that the text asks for on tensor cores
  Bytes compulsory;              // inputs once and outputs once
  Dtype products = Dtype::bf16;
  // What the programs stored was made NaN before the timed runs; behind them every copy has again
  // the bits that the checked run of the same inputs had.
  bool stored_while_timed = true;
};

struct ClaimFault {
  std::string rule;  // one of claim_rules()
  std::string text;
};

// "unchecked", "wrong", "one-seed", "ignores-inputs", "no-work", "above-ceilings".
std::vector<std::string> claim_rules();

// The shortest time that the GPU's ceilings allow: FLOPs at the datasheet's tensor rate and the
// boost clock, and what exceeds the L2 of the compulsory bytes at the datasheet's HBM rate, since
// the L2 may hold the rest.
Seconds least_possible(const ClaimEvidence& evidence, const Gpu& gpu);

// Empty: nothing speaks against the claim.
std::vector<ClaimFault> claim_faults(const ClaimEvidence& evidence, const Gpu& gpu);

}  // namespace fuseline::cuda
