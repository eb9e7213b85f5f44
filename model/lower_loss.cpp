// The loss, its gradient and that of gathered tables in primitives.
#include "base/error.h"
#include "model/lower_ops.h"

namespace fuseline {

namespace {

// Maximum, sum of exponentials and target of each row. loss = lse - target.
void cross_entropy(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value top = e.row_reduce(ReduceFn::max, x, "m");
  const Value p = e.map(MapFn::exp, {e.map(MapFn::sub, {x, top}, "d")}, "p");
  const Value sum = e.row_reduce(ReduceFn::sum, p, "s");
  const Value lse = e.map(MapFn::add, {top, e.map(MapFn::log, {sum}, "l")}, "lse");
  if (op.writes.size() > 1) e.produce(op.writes[1], lse, true);
  const Value one = e.one_hot(op.reads[1], op.reads[0].cols);
  const Value target = e.row_reduce(ReduceFn::sum, e.map(MapFn::mul, {x, one}, "xt"), "t");
  e.produce(op.writes[0], e.map(MapFn::sub, {lse, target}, "loss"), true);
}

// dx = dloss·(exp(x - lse) - one_hot)
void cross_entropy_backward(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[1]);
  const Value lse = e.per_row(op.reads[3], "lse");
  const Value p = e.map(MapFn::exp, {e.map(MapFn::sub, {x, lse}, "d")}, "p");
  const Value one = e.one_hot(op.reads[2], op.reads[1].cols);
  const Value rest = e.map(MapFn::sub, {p, one}, "d");
  const Value dloss = e.per_row(op.reads[0], "dloss");
  e.produce(op.writes[0], e.map(MapFn::mul, {rest, dloss}, "dx"));
}

void cross_entropy_partial(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.tile_cols == partial_tile, op.name);
  e.emit(OnlineLogSumExp{e.tile(op.reads[0]), op.reads[1], op.writes[0]});
}

// Maxima, sums and targets of the tiles are a third of the partials' columns each.
void cross_entropy_finish(Emitter& e, const Op& op) {
  const auto third = [&](std::int64_t i) {
    Operand part = op.reads[0];
    part.cols /= 3;
    part.col_begin += i * part.cols;
    return e.tile(part);
  };
  const Value m = third(0);
  const Value top = e.row_reduce(ReduceFn::max, m, "top");
  const Value scale = e.map(MapFn::exp, {e.map(MapFn::sub, {m, top}, "d")}, "v");
  const Value sum = e.row_reduce(ReduceFn::sum, e.map(MapFn::mul, {third(1), scale}, "p"), "s");
  const Value lse = e.map(MapFn::add, {top, e.map(MapFn::log, {sum}, "l")}, "lse");
  if (op.writes.size() > 1) e.produce(op.writes[1], lse, true);
  const Value target = e.row_reduce(ReduceFn::sum, third(2), "t");
  e.produce(op.writes[0], e.map(MapFn::sub, {lse, target}, "loss"), true);
}

// Of a table gathered by token, or by position: the operands' rows repeat.
void embedding_backward(Emitter& e, const Op& op) {
  const Value sum = e.fresh("sum");
  GatherSum gather{sum, std::nullopt, op.reads[0]};
  if (op.reads.size() > 1)
    gather.ids = op.reads[1];
  else
    gather.period = op.attributes.q_tokens;
  e.emit(gather);
  e.produce(op.writes[0], sum);
}

}  // namespace

bool emit_loss_op(Emitter& e, const Op& op) {
  switch (op.kind) {
    case OpKind::cross_entropy:
      return cross_entropy(e, op), true;
    case OpKind::cross_entropy_backward:
      return cross_entropy_backward(e, op), true;
    case OpKind::cross_entropy_partial:
      return cross_entropy_partial(e, op), true;
    case OpKind::cross_entropy_finish:
      return cross_entropy_finish(e, op), true;
    case OpKind::embedding_backward:
      return embedding_backward(e, op), true;
    default:
      return false;
  }
}

}  // namespace fuseline
