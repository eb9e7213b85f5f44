// A norm between two GEMMs leaves the row's way: its statistics come out of the first GEMM's
// epilogue, its scale goes into the second's (maths.md, Forward).
//   RMSNorm:    xn = norm(h, γ); y = xn W   ->  s = Σ_tile h²; r = rsqrt(Σ_t s / D + eps);
//                                               y = r ∘ (h W'),  W' = γ folded into W
//   LayerNorm:  two statistics;  y = r ∘ (h W') - (r μ) ⊗ γW + (βW + bias)
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite split_norm();

// For training: the weights change in every step, so nothing is folded into them beforehand. The
// norm leaves a = x∘γ in the place of its result, and LayerNorm's two row vectors are operators.
Rewrite split_norm_keeping_weight();

}  // namespace fuseline
