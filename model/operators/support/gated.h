// What activations of gate and up have in common: y = f(g)·u for each pair (g, u), and its
// gradient. Gate and up are two halves of the columns, or adjacent columns. One of them is a file
// that says what f and its derivative are.
#pragma once

#include <utility>

#include "model/backward_adjoint.h"
#include "model/operators/operator.h"
#include "model/operators/operator_table.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

// F: f(g) of a number in fp64.
template <class F>
void gated_reference(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out, F f) {
  const reference::View<const double> gu = reference::read(g, in, op.reads[0]);
  const reference::View<double> y = reference::write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t n = 0; n < y.cols; ++n) {
      const reference::Pair p = reference::pair_of(op.attributes.as<Pairs>(), n, y.cols);
      y(m, n) = f(gu(m, p.a)) * gu(m, p.b);
    }
  }
}

// (dg, du) = (dy·u·f'(g), dy·f(g)), and y again where someone reads it.
template <class F, class Slope>
void gated_backward_reference(const Graph& g, const Op& op, const TensorValues& in,
                              TensorValues& out, F f, Slope slope) {
  const reference::View<const double> dy = reference::read(g, in, op.reads[0]);
  const reference::View<const double> gu = reference::read(g, in, op.reads[1]);
  const reference::View<double> dgu = reference::write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < dy.rows; ++m) {
    for (std::int64_t n = 0; n < dy.cols; ++n) {
      const reference::Pair p = reference::pair_of(op.attributes.as<Pairs>(), n, dy.cols);
      const double up = gu(m, p.b);
      const double t = f(gu(m, p.a));
      dgu(m, p.a) = dy(m, n) * up * slope(gu(m, p.a));
      dgu(m, p.b) = dy(m, n) * t;
      if (op.writes.size() > 1) reference::write(g, out, op.writes[1])(m, n) = t * up;
    }
  }
}

// `joined` does it to adjacent pairs; f to gates that lie apart.
using OfGate = Value (*)(Emitter&, Value gate);
void gated_lower(Emitter& e, const Op& op, PairFn joined, OfGate f);
void gated_backward_lower(Emitter& e, const Op& op, PairFn gradient, OfGate f, OfGate slope);

// `backward`: the operator that is the gradient.
void gated_gradient(Adjoint& a, OpKind backward);

Extent gated_extent(const Op& op);
Extent gated_backward_extent(const Op& op);
bool gated_in_parts(const Op& op);

}  // namespace fuseline
