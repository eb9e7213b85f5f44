// What each operator is in primitives: the bodies of lower.cpp's programs.
#pragma once

#include <vector>

#include "model/emit.h"

namespace fuseline {

// Appends the operator's primitives; nothing for one that is its kernel's mainloop. InternalError
// for a kind that no program computes.
void emit_op(Emitter& e, const Op& op);

// The operators of the backward pass among them, and the loss with its gradient and those of
// gathered tables; false for others.
bool emit_backward_op(Emitter& e, const Op& op);
bool emit_loss_op(Emitter& e, const Op& op);

// Rows and columns that the operator's tiles cover: its widest operand that is read or written as a
// tile; of swiglu with gate and up side by side, one of the two.
struct Extent {
  std::int64_t rows = 0, cols = 0;
};
Extent extent_of(const Op& op);

// Attention in one kernel: scores, softmax and context by online softmax, or their gradient.
// `ops` in dependency order; what precedes the forward mainloop is done to Q, K and V as they are
// loaded.
bool is_attention_core(const Op& op);
Program attention_program(Emitter& e, const std::vector<OpId>& ops);

// One of attention's products as independent GEMMs over the heads.
void batched_mainloop(Emitter& e, const Op& op);

}  // namespace fuseline
