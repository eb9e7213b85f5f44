// What attention libraries launch around the fused backward kernel:
//   dq = attention_d_q(..)  ->  a = attention_d_q(..) in fp32; dq = cast(a)
// because the thread blocks of all key tiles add to it; and with grouped queries
//   dk = attention_d_k(..)  ->  k = the same for every query head; dk = head_sum(k)
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite accumulate_dq();
Rewrite sum_grouped_heads();

}  // namespace fuseline
