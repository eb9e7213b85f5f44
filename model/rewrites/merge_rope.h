// RoPE treats every head alike, so the neighbouring slices of Q and K are rotated as one:
//   q_rot = rope(qkv[:, q]); k_rot = rope(qkv[:, k])  ->  qk_rot = rope(qkv[:, q k])
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite merge_rope();

}  // namespace fuseline
