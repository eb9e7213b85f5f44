// Pairs become adjacent columns, so that one tile of a GEMM holds both halves. The weight's rows
// (and the vectors that follow them) are reordered once:
//   interleave_gate_up   (g0 g1 .. u0 u1 ..)  ->  (g0 u0 g1 u1 ..)        columns of gate and up
//   interleave_heads     (a0 a1 .. b0 b1 ..)  ->  (a0 b0 a1 b1 ..)        RoPE pairs of each head
// Q K^T does not change when both are reordered alike; the key cache keeps the new order.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite interleave_gate_up();
Rewrite interleave_heads();

// The gradients of reordered weights come out in their order: notes them in the preparation, once
// the block has its backward pass.
void note_reordered_gradients(Block& block);

}  // namespace fuseline
