// Products in a batch: attention's over heads and sequences. Every product finds its matrix in an
// operand that holds heads side by side, sequences (or sequences and heads) below each other, or
// both; several products may share one: query heads that share a key head.
//
//   q [B·T, H·d]        share H, beside H: product b·H + h has rows b·T onward, columns h·d onward
//   k [B·S, Hkv·d]      share H, beside Hkv: columns (h · Hkv / H) · d onward
//   scores [B·H·T, S]   share 1, beside 1: rows (b·H + h) · T onward
#pragma once

#include "host_device.cuh"

namespace fuseline::gpu {

struct BatchPlace {
  int share = 1;                            // products that one entry of the stack serves
  int beside = 1;                           // matrices side by side in an entry
  long long stack_step = 0, head_step = 0;  // elements from one matrix to the next

  FUSELINE_HD int stack(int product) const { return product / share; }
  FUSELINE_HD int head(int product) const { return product % share * beside / share; }
  FUSELINE_HD long long offset(int product) const {
    return stack(product) * stack_step + head(product) * head_step;
  }
};

// Result r of a batch is the sum of the products r · summed to (r + 1) · summed - 1.
struct Batch {
  int results = 1;
  int summed = 1;
  BatchPlace a, b;
};

}  // namespace fuseline::gpu
