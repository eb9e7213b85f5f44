// Shapes of programs that several operators have in common.
#pragma once

#include <optional>

#include "model/emit.h"
#include "model/operators/operator.h"
#include "model/primitives/functions.h"

namespace fuseline {

// Contractions: the mainloop computes them.
inline void in_mainloop(Emitter&, const Op&) {}

// Operators that are one map of their operands.
void unary(Emitter& e, const Op& op, MapFn fn, const char* name, double constant = 0);
void binary(Emitter& e, const Op& op, MapFn fn, const char* name);

// dx = dy·f'(x): the gradient of a map, whose derivative `slope` gives.
void by_slope(Emitter& e, const Op& op, MapFn slope);

// Column i of a narrow operand.
Operand column(const Operand& o, std::int64_t i);

// One half of an operand's columns.
Operand half(Operand o, bool upper);

// A product with a weight, or with one for each group of rows: sets the mainloop and stores its
// result.
void product_mainloop(Emitter& e, const Op& op, bool interleaved);

// Attention's products as independent GEMMs over the heads. Operands hold the heads side by side,
// or stacked by rows: those of [B·H·T, S].
GemmMainloop queries_with_keys(const Op& op);    // [T, d] [S, d]^T: scores, dP
GemmMainloop scores_with_values(const Op& op);   // [T, S] [S, d]: the context, dQ
GemmMainloop scores_with_queries(const Op& op);  // [T, S]^T [T, d], shared heads summed: dK, dV

// Sets the mainloop and stores its result; `scaled`: with attention's scale.
void heads_result(Emitter& e, const Op& op, const GemmMainloop& mainloop, bool scaled);

}  // namespace fuseline
