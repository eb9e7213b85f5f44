// What our own attention kernels have: the simulator and the emitter ask the same functions.
#pragma once

#include <cstdint>

#include "model/program.h"

namespace fuseline {

// Of wider heads our own decode kernel has a second launch, which joins what thread blocks have
// made of a part of the keys each. Of narrower ones the last thread block joins them.
inline constexpr std::int64_t widest_joined_head = 256;

// Whether those for the warp-group instruction have these heads. Those for the warp's own
// instruction, which is a fraction as fast, take all others.
// `bias_columns`: of the rows of the bias's tensor, as it lies in memory; 0 without a bias. The
// copy engine brings the bias, so its rows must start at multiples of 16 bytes.
bool has_wgmma_attention(const AttentionMainloop& m, std::int64_t bias_columns);

}  // namespace fuseline
