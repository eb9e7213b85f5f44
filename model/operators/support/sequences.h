// Operators with vectors for each sequence: row m of x takes row m / tokens of them.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "model/backward_adjoint.h"
#include "model/operators/attributes.h"
#include "model/operators/operator.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

// Of a call in a block's text whose operand `vectors` has a row for each sequence.
Attributes sequences_of_call(OperatorCall& call, std::size_t vectors);

// y = f(x, s) of x [M, N] and one vector s [B, N].
template <class F>
void with_sequence(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out, F f) {
  const reference::View<const double> x = reference::read(g, in, op.reads[0]);
  const reference::View<const double> s = reference::read(g, in, op.reads[1]);
  const reference::View<double> y = reference::write(g, out, op.writes[0]);
  const std::int64_t tokens = op.attributes.as<Sequences>().tokens;
  FUSELINE_ASSERT(tokens > 0 && s.rows * tokens == x.rows, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = f(x(m, n), s(m / tokens, n));
}
void with_sequence(Emitter& e, const Op& op, MapFn fn);

// Of read i, which has a row for each sequence: the sum of dy, or of dy·z, over its rows.
void sum_gradient_of_sequences(Adjoint& a, std::size_t i, const std::string& name);
void sum_gradient_of_sequences(Adjoint& a, std::size_t i, const std::string& name,
                               const Operand& z);

}  // namespace fuseline
