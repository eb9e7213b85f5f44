// The operators of the forward pass in primitives.
#include "model/lower_ops.h"
#include "base/error.h"
#include "model/operators.h"

namespace fuseline {

namespace {

void rms_norm(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value s = e.row_reduce(ReduceFn::sum_squares, x, "s");
  const Value mean =
      e.map(MapFn::scale_by_constant, {s}, "m", 1.0 / static_cast<double>(op.reads[0].cols));
  const Value shifted = e.map(MapFn::add_constant, {mean}, "m", op.attributes.eps);
  const Value r = e.map(MapFn::rsqrt, {shifted}, "r");
  if (op.writes.size() > 1) e.produce(op.writes[1], r, true);
  const Value scaled = e.map(MapFn::mul, {x, r}, "xr");
  const Value g = e.per_col(op.reads[1], "g");
  e.produce(op.writes[0], e.map(MapFn::mul, {scaled, g}, "xn"));
}

void layer_norm(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value mu = e.row_reduce(ReduceFn::mean, x, "mu");
  const Value centred = e.map(MapFn::sub, {x, mu}, "xc");
  const Value s = e.row_reduce(ReduceFn::sum_squares, centred, "s");
  const Value var =
      e.map(MapFn::scale_by_constant, {s}, "v", 1.0 / static_cast<double>(op.reads[0].cols));
  const Value shifted = e.map(MapFn::add_constant, {var}, "v", op.attributes.eps);
  const Value r = e.map(MapFn::rsqrt, {shifted}, "r");
  if (op.writes.size() > 1) {  // r and r·mean for the backward pass
    Operand to = op.writes[1];
    to.cols = 1;
    e.produce(to, r, true);
    ++to.col_begin;
    e.produce(to, e.map(MapFn::mul, {r, mu}, "rmu"), true);
  }
  const Value scaled = e.map(MapFn::mul, {centred, r}, "xr");
  const Value g = e.per_col(op.reads[1], "g");
  const Value weighted = e.map(MapFn::mul, {scaled, g}, "xg");
  const Value b = e.per_col(op.reads[2], "b");
  e.produce(op.writes[0], e.map(MapFn::add, {weighted, b}, "xn"));
}

void softmax(Emitter& e, const Op& op) {
  Value x = e.tile(op.reads[0]);
  if (op.attributes.causal) {
    const Value masked = e.fresh("x");
    e.emit(Mask{masked, x, op.attributes});
    x = masked;
  }
  const Value top = e.row_reduce(ReduceFn::max, x, "m");
  const Value shifted = e.map(MapFn::sub, {x, top}, "x");
  const Value p = e.map(MapFn::exp, {shifted}, "p");
  const Value sum = e.row_reduce(ReduceFn::sum, p, "s");
  if (op.writes.size() > 1) {
    const Value log = e.map(MapFn::log, {sum}, "l");
    e.produce(op.writes[1], e.map(MapFn::add, {top, log}, "lse"), true);
  }
  const Value inverse = e.map(MapFn::reciprocal, {sum}, "r");
  e.produce(op.writes[0], e.map(MapFn::mul, {p, inverse}, "p"));
}

void rope(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value cos = e.table(op.reads[1]);
  const Value sin = e.table(op.reads[2]);
  const std::int64_t distance = op.attributes.pairs_interleaved ? 1 : op.attributes.head_width / 2;
  e.produce(op.writes[0], e.pairs(PairFn::rope, {x, cos, sin}, "rot", distance));
}

// Gate and up are two operands of F columns, or adjacent columns of one.
void swiglu(Emitter& e, const Op& op) {
  if (op.attributes.pairs_interleaved) {
    const Value x = e.tile(op.reads[0]);
    e.produce(op.writes[0], e.pairs(PairFn::swiglu, {x}, "o", 1));
    return;
  }
  Operand gate = op.reads[0];
  gate.cols /= 2;
  Operand up = gate;
  up.col_begin += gate.cols;
  const Value g = e.tile(gate);
  const Value u = e.tile(up);
  const Value t = e.map(MapFn::silu, {g}, "t");
  e.produce(op.writes[0], e.map(MapFn::mul, {t, u}, "o"));
}

void row_stats_partial(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.tile_cols == partial_tile, op.name);
  const bool moments = op.writes[0].cols > ceil_div(op.reads[0].cols, partial_tile);
  const Value x = e.tile(op.reads[0]);
  e.emit(TileReduce{moments ? ReduceFn::sum_and_squares : ReduceFn::sum_squares, Axis::rows, x,
                    op.writes[0]});
}

// r = rsqrt(sum of partials / D + eps), and for LayerNorm also r·mean. The moments of a tile are
// two adjacent columns.
void row_stats_finish(Emitter& e, const Op& op) {
  const double inverse = 1.0 / static_cast<double>(op.attributes.norm_width);
  const auto mean_of = [&](Value partials, const char* name) {
    const Value sum = e.row_reduce(ReduceFn::sum, partials, "s");
    return e.map(MapFn::scale_by_constant, {sum}, name, inverse);
  };
  if (op.writes[0].cols == 1) {
    const Value m = mean_of(e.tile(op.reads[0]), "m");
    const Value shifted = e.map(MapFn::add_constant, {m}, "m", op.attributes.eps);
    e.produce(op.writes[0], e.map(MapFn::rsqrt, {shifted}, "r"), true);
    return;
  }
  const Value mu = mean_of(e.halves(op.reads[0], 2, false, "sums"), "mu");
  const Value square = mean_of(e.halves(op.reads[0], 2, true, "squares"), "m");
  const Value mu2 = e.map(MapFn::square, {mu}, "mu2");
  const Value var = e.map(MapFn::sub, {square, mu2}, "v");
  const Value shifted = e.map(MapFn::add_constant, {var}, "v", op.attributes.eps);
  const Value r = e.map(MapFn::rsqrt, {shifted}, "r");
  const Value rmu = e.map(MapFn::mul, {r, mu}, "rmu");
  Operand to = op.writes[0];
  to.cols = 1;
  e.produce(to, r, true);
  ++to.col_begin;
  e.produce(to, rmu, true);
}

// y = r·x - (r·mean)·wg + wb
void layer_norm_deferred(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  Operand column = op.reads[1];
  column.cols = 1;
  const Value r = e.per_row(column, "r");
  ++column.col_begin;
  const Value rmu = e.per_row(column, "rmu");
  const Value wg = e.per_col(op.reads[2], "gW");
  const Value wb = e.per_col(op.reads[3], "bW");
  const Value scaled = e.map(MapFn::mul, {x, r}, "y");
  const Value correction = e.map(MapFn::mul, {rmu, wg}, "c");
  const Value centred = e.map(MapFn::sub, {scaled, correction}, "y");
  e.produce(op.writes[0], e.map(MapFn::add, {centred, wb}, "y"));
}

void embedding(Emitter& e, const Op& op) {
  Value x = e.fresh("x");
  e.emit(Gather{x, op.reads[0], op.reads[1]});
  if (op.reads.size() > 2) x = e.map(MapFn::add, {x, e.table(op.reads[2])}, "x");
  e.produce(op.writes[0], x);
}

// Operators that are one map of their operands.
void unary(Emitter& e, const Op& op, MapFn fn, const char* name, double constant = 0) {
  const Value x = e.tile_or_row(op.reads[0]);
  e.produce(op.writes[0], e.map(fn, {x}, name, constant));
}

void binary(Emitter& e, const Op& op, MapFn fn, const char* name) {
  const Value x = e.tile_or_row(op.reads[0]);
  const Value z = e.tile_or_row(op.reads[1]);
  e.produce(op.writes[0], e.map(fn, {x, z}, name));
}

}  // namespace

void emit_op(Emitter& e, const Op& op) {
  if (emit_backward_op(e, op) || emit_loss_op(e, op)) return;
  switch (op.kind) {
    case OpKind::gemm:
    case OpKind::attention_scores:
    case OpKind::attention_context:
    case OpKind::attention_d_probs:
    case OpKind::attention_d_q:
    case OpKind::attention_d_k:
    case OpKind::attention_d_v:
      return;  // the mainloop
    case OpKind::softmax:
      return softmax(e, op);
    case OpKind::rms_norm:
      return rms_norm(e, op);
    case OpKind::layer_norm:
      return layer_norm(e, op);
    case OpKind::rope:
      return rope(e, op);
    case OpKind::swiglu:
      return swiglu(e, op);
    case OpKind::gelu:
      return unary(e, op, MapFn::gelu_tanh, "o");
    case OpKind::bias_add: {
      const Value x = e.tile(op.reads[0]);
      const Value b = e.per_col(op.reads[1], "b");
      return e.produce(op.writes[0], e.map(MapFn::add, {x, b}, "y"));
    }
    case OpKind::residual_add:
    case OpKind::grad_add:
      return binary(e, op, MapFn::add, "h");
    case OpKind::cache_append:
      return e.produce(op.writes[0], e.tile(op.reads[0]));
    case OpKind::cast:
      return unary(e, op, MapFn::copy, "x");
    case OpKind::square:
      return unary(e, op, MapFn::square, "x2");
    case OpKind::row_mean: {
      const Value x = e.tile(op.reads[0]);
      return e.produce(op.writes[0], e.row_reduce(ReduceFn::mean, x, "m"), true);
    }
    case OpKind::add_scalar:
      return unary(e, op, MapFn::add_constant, "m", op.attributes.scalar);
    case OpKind::rsqrt:
      return unary(e, op, MapFn::rsqrt, "r");
    case OpKind::mul_rows:
    case OpKind::row_scale: {
      const Value x = e.tile(op.reads[0]);
      const Value r = e.per_row(op.reads[1], "r");
      return e.produce(op.writes[0], e.map(MapFn::mul, {x, r}, "y"));
    }
    case OpKind::mul_cols: {
      const Value x = e.tile(op.reads[0]);
      const Value g = e.per_col(op.reads[1], "g");
      return e.produce(op.writes[0], e.map(MapFn::mul, {x, g}, "a"));
    }
    case OpKind::mul_table: {
      const Value x = e.tile(op.reads[0]);
      const Value t = e.table(op.reads[1]);
      return e.produce(op.writes[0], e.map(MapFn::mul, {x, t}, "y"));
    }
    case OpKind::negate_half: {
      const bool upper = !op.attributes.halves_swapped;
      const Value half =
          e.halves(op.reads[0], op.attributes.head_width, upper, upper ? "x2" : "x1");
      return e.produce(op.writes[0], e.map(MapFn::negate, {half}, "n"));
    }
    case OpKind::concat_halves: {
      const bool swapped = op.attributes.halves_swapped;
      const Value negated = e.tile(op.reads[0]);
      const Value half =
          e.halves(op.reads[1], op.attributes.head_width, swapped, swapped ? "x2" : "x1");
      const Value y = e.fresh("y");
      e.emit(ConcatHalves{y, swapped ? half : negated, swapped ? negated : half,
                          op.attributes.head_width});
      return e.produce(op.writes[0], y);
    }
    case OpKind::add:
      return binary(e, op, MapFn::add, "y");
    case OpKind::silu:
      return unary(e, op, MapFn::silu, "t");
    case OpKind::mul:
      return binary(e, op, MapFn::mul, "o");
    case OpKind::row_stats_partial:
      return row_stats_partial(e, op);
    case OpKind::row_stats_finish:
      return row_stats_finish(e, op);
    case OpKind::layer_norm_deferred:
      return layer_norm_deferred(e, op);
    case OpKind::embedding:
      return embedding(e, op);
    default:
      break;
  }
  FUSELINE_ASSERT(false, std::string("no program for ") + name_of(op.kind));
}

}  // namespace fuseline
