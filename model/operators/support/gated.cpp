#include "model/operators/support/gated.h"

#include <vector>

namespace fuseline {

void gated_lower(Emitter& e, const Op& op, PairFn joined, OfGate f) {
  if (has_adjacent_pairs(op)) {
    const Value x = e.tile(op.reads[0]);
    e.produce(op.writes[0], e.pairs(joined, {x}, "o", 1));
    return;
  }
  const Value g = e.tile(half(op.reads[0], false));
  const Value u = e.tile(half(op.reads[0], true));
  const Value t = f(e, g);
  e.produce(op.writes[0], e.map(maps::mul, {t, u}, "o"));
}

void gated_backward_lower(Emitter& e, const Op& op, PairFn gradient, OfGate f, OfGate slope) {
  if (has_adjacent_pairs(op)) {
    const Value dy = e.tile(op.reads[0]);
    const Value gu = e.tile(op.reads[1]);
    const Value dgu = e.fresh("dgu");
    const Value again = e.fresh("o");
    e.emit(PairMap{{dgu, again}, gradient, {gu, dy}, 1});
    e.produce(op.writes[0], dgu);
    if (op.writes.size() > 1) e.produce(op.writes[1], again);
    return;
  }
  const Value dy = e.tile(op.reads[0]);
  const Value gate = e.tile(half(op.reads[1], false));
  const Value up = e.tile(half(op.reads[1], true));
  const Value t = f(e, gate);
  const Value du = e.map(maps::mul, {dy, t}, "du");
  const Value v = slope(e, gate);
  const Value dt = e.map(maps::mul, {dy, up}, "dt");
  const Value dg = e.map(maps::mul, {dt, v}, "dg");
  e.produce(half(op.writes[0], false), dg);
  e.produce(half(op.writes[0], true), du);
  if (op.writes.size() > 1) e.produce(op.writes[1], e.map(maps::mul, {t, up}, "o"));
}

void gated_gradient(Adjoint& a, OpKind backward) {
  const Op& op = a.op();
  const Operand gu = a.forward_value(op.reads[0]);
  std::vector<Operand> writes{a.target(0)};
  if (const Operand* again = a.wanted_again()) writes.push_back(*again);
  a.emit("d_" + op.name, backward, {a.dy(), gu}, std::move(writes), op.attributes);
}

Extent gated_extent(const Op& op) {
  return {op.writes[0].rows, has_adjacent_pairs(op) ? op.reads[0].cols : op.writes[0].cols};
}

Extent gated_backward_extent(const Op& op) {
  return {op.writes[0].rows, has_adjacent_pairs(op) ? op.writes[0].cols : op.reads[0].cols};
}

bool gated_in_parts(const Op& op) { return !has_adjacent_pairs(op); }

}  // namespace fuseline
