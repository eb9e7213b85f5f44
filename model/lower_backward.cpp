// The operators of the backward pass in primitives. x̂ stands for a normalised row element.
#include "base/error.h"
#include "base/units.h"
#include "model/lower_ops.h"

namespace fuseline {

namespace {

Operand column(const Operand& o, std::int64_t i) {
  Operand one = o;
  one.col_begin += i;
  one.cols = 1;
  return one;
}

// x̂ = r·x, or r·x - r·mean, from the statistics of the norm.
Value normalised(Emitter& e, Value x, const Operand& stats) {
  const Value r = e.per_row(column(stats, 0), "r");
  const Value scaled = e.map(MapFn::mul, {x, r}, "z");
  if (stats.cols == 1) return scaled;
  const Value rmu = e.per_row(column(stats, 1), "rmu");
  return e.map(MapFn::sub, {scaled, rmu}, "z");
}

// dx = r·(g - x̂·mean(g·x̂) (- mean(g))), g = w·dy
void norm_backward(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value x = e.tile(op.reads[1]);
  const Value z = normalised(e, x, op.reads[3]);
  const Value w = e.per_col(op.reads[2], "g");
  const Value g = e.map(MapFn::mul, {dy, w}, "dyg");
  const Value product = e.map(MapFn::mul, {g, z}, "p");
  const Value c = e.row_reduce(ReduceFn::mean, product, "c");
  const Value along = e.map(MapFn::mul, {z, c}, "zc");
  Value inner = e.map(MapFn::sub, {g, along}, "d");
  if (op.reads[3].cols == 2) {
    const Value mean = e.row_reduce(ReduceFn::mean, g, "m");
    inner = e.map(MapFn::sub, {inner, mean}, "d");
  }
  const Value r = e.per_row(column(op.reads[3], 0), "r");
  e.produce(op.writes[0], e.map(MapFn::mul, {inner, r}, "dx"));
}

void norm_weight_grad(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value z = normalised(e, e.tile(op.reads[1]), op.reads[2]);
  const Value product = e.map(MapFn::mul, {dy, z}, "p");
  e.produce(op.writes[0], e.column_sum(product, "dg"), true, Axis::cols);
}

void norm_apply(Emitter& e, const Op& op) {
  const Value z = normalised(e, e.tile(op.reads[0]), op.reads[1]);
  const Value g = e.per_col(op.reads[2], "g");
  Value y = e.map(MapFn::mul, {z, g}, "hn");
  if (op.reads.size() > 3) y = e.map(MapFn::add, {y, e.per_col(op.reads[3], "b")}, "hn");
  e.produce(op.writes[0], y);
}

// y = (dres +) r·(w·p - x̂·c0 (- c1))
void norm_backward_deferred(Emitter& e, const Op& op) {
  const Value p = e.tile(op.reads[0]);
  const Value h = e.tile(op.reads[1]);
  const Value w = e.per_col(op.reads[2], "g");
  const Value z = normalised(e, h, op.reads[3]);
  const Value c = e.per_row(column(op.reads[4], 0), "c");
  const Value g = e.map(MapFn::mul, {p, w}, "pg");
  const Value along = e.map(MapFn::mul, {z, c}, "zc");
  Value inner = e.map(MapFn::sub, {g, along}, "d");
  if (op.reads[4].cols == 2)
    inner = e.map(MapFn::sub, {inner, e.per_row(column(op.reads[4], 1), "c1")}, "d");
  const Value r = e.per_row(column(op.reads[3], 0), "r");
  const Value dh = e.map(MapFn::mul, {inner, r}, "dh");
  if (op.reads.size() < 6) return e.produce(op.writes[0], dh);
  const Value dres = e.tile(op.reads[5]);
  e.produce(op.writes[0], e.map(MapFn::add, {dres, dh}, "dres"));
}

void row_dot_partial(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.tile_cols == partial_tile, op.name);
  const Value dy = e.tile(op.reads[0]);
  Value y = e.tile(op.reads[1]);
  if (op.reads.size() > 2) y = e.map(MapFn::sub, {y, e.per_col(op.reads[2], "b")}, "yb");
  TileReduce reduce{ReduceFn::sum, Axis::rows, e.map(MapFn::mul, {dy, y}, "p"), op.writes[0]};
  if (op.reads.size() > 3)
    reduce.second = e.map(MapFn::mul, {dy, e.per_col(op.reads[3], "gW")}, "q");
  e.emit(reduce);
}

// c = sum of the partials / D, or of the even and of the odd ones.
void row_dot_finish(Emitter& e, const Op& op) {
  const double inverse = 1.0 / static_cast<double>(op.attributes.norm_width);
  const std::int64_t sums = op.writes[0].cols;
  for (std::int64_t i = 0; i < sums; ++i) {
    const Value partials =
        sums == 1 ? e.tile(op.reads[0]) : e.halves(op.reads[0], 2, i == 1, "partials");
    const Value sum = e.row_reduce(ReduceFn::sum, partials, "s");
    e.produce(column(op.writes[0], i), e.map(MapFn::scale_by_constant, {sum}, "c", inverse), true);
  }
}

void col_stats_partial(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.tile_rows == partial_tile, op.name);
  Value x = e.tile(op.reads[0]);
  if (op.reads.size() > 1) {
    Value z = e.tile(op.reads[1]);
    if (op.reads.size() > 2) z = normalised(e, z, op.reads[2]);
    x = e.map(MapFn::mul, {x, z}, "p");
  }
  e.emit(TileReduce{ReduceFn::sum, Axis::cols, x, op.writes[0]});
}

void rope_backward(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value cos = e.table(op.reads[1]);
  const Value sin = e.table(op.reads[2]);
  const std::int64_t distance = op.attributes.pairs_interleaved ? 1 : op.attributes.head_width / 2;
  e.produce(op.writes[0], e.pairs(PairFn::rope_inverse, {dy, cos, sin}, "rot", distance));
}

// dG = dO·U·(s + t(1 - s)), dU = dO·t, recomputed O = t·U; s = σ(G), t = G·s.
void swiglu_backward(Emitter& e, const Op& op) {
  if (op.attributes.pairs_interleaved) {
    const Value dy = e.tile(op.reads[0]);
    const Value gu = e.tile(op.reads[1]);
    const Value dgu = e.fresh("dgu");
    const Value again = e.fresh("o");
    e.emit(PairMap{{dgu, again}, PairFn::swiglu_backward, {gu, dy}, 1});
    e.produce(op.writes[0], dgu);
    if (op.writes.size() > 1) e.produce(op.writes[1], again);
    return;
  }
  const auto half = [](Operand o, bool upper) {
    o.cols /= 2;
    if (upper) o.col_begin += o.cols;
    return o;
  };
  const Value dy = e.tile(op.reads[0]);
  const Value gate = e.tile(half(op.reads[1], false));
  const Value up = e.tile(half(op.reads[1], true));
  const Value s = e.map(MapFn::sigmoid, {gate}, "s");
  const Value t = e.map(MapFn::mul, {gate, s}, "t");
  const Value du = e.map(MapFn::mul, {dy, t}, "du");
  const Value negative = e.map(MapFn::negate, {s}, "n");
  const Value rest = e.map(MapFn::add_constant, {negative}, "n", 1.0);
  const Value bend = e.map(MapFn::mul, {t, rest}, "v");
  const Value slope = e.map(MapFn::add, {s, bend}, "v");
  const Value dt = e.map(MapFn::mul, {dy, up}, "dt");
  const Value dg = e.map(MapFn::mul, {dt, slope}, "dg");
  e.produce(half(op.writes[0], false), dg);
  e.produce(half(op.writes[0], true), du);
  if (op.writes.size() > 1) e.produce(op.writes[1], e.map(MapFn::mul, {t, up}, "o"));
}

void gelu_backward(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value slope = e.map(MapFn::gelu_tanh_slope, {e.tile(op.reads[1])}, "v");
  e.produce(op.writes[0], e.map(MapFn::mul, {dy, slope}, "dx"));
}

// dx = dy·s·(1 + x·(1 - s))
void silu_backward(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value x = e.tile(op.reads[1]);
  const Value s = e.map(MapFn::sigmoid, {x}, "s");
  const Value negative = e.map(MapFn::negate, {s}, "n");
  const Value rest = e.map(MapFn::add_constant, {negative}, "n", 1.0);
  const Value bend = e.map(MapFn::mul, {x, rest}, "v");
  const Value one = e.map(MapFn::add_constant, {bend}, "v", 1.0);
  const Value slope = e.map(MapFn::mul, {s, one}, "v");
  e.produce(op.writes[0], e.map(MapFn::mul, {dy, slope}, "dx"));
}

void softmax_backward(Emitter& e, const Op& op) {
  const Value p = e.tile(op.reads[0]);
  const Value dp = e.tile(op.reads[1]);
  const Value product = e.map(MapFn::mul, {p, dp}, "pdp");
  const Value delta = e.row_reduce(ReduceFn::sum, product, "delta");
  const Value rest = e.map(MapFn::sub, {dp, delta}, "d");
  e.produce(op.writes[0], e.map(MapFn::mul, {p, rest}, "ds"));
}

void softmax_backward_delta(Emitter& e, const Op& op) {
  const Value p = e.tile(op.reads[0]);
  const Value dp = e.tile(op.reads[1]);
  const Value delta = e.per_row(op.reads[2], "delta");
  const Value rest = e.map(MapFn::sub, {dp, delta}, "d");
  e.produce(op.writes[0], e.map(MapFn::mul, {p, rest}, "ds"));
}

void softmax_recompute(Emitter& e, const Op& op) {
  Value x = e.tile(op.reads[0]);
  if (op.attributes.causal || op.attributes.window > 0) {
    const Value masked = e.fresh("x");
    e.emit(Mask{masked, x, op.attributes});
    x = masked;
  }
  const Value lse = e.per_row(op.reads[1], "lse");
  const Value shifted = e.map(MapFn::sub, {x, lse}, "x");
  e.produce(op.writes[0], e.map(MapFn::exp, {shifted}, "p"));
}

// Rows are those of the heads: rowsum(dY·Y) of each.
void attention_backward_dot(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value y = e.tile(op.reads[1]);
  const Value product = e.map(MapFn::mul, {dy, y}, "p");
  e.produce(op.writes[0], e.row_reduce(ReduceFn::sum, product, "delta"), true);
}

void head_sum(Emitter& e, const Op& op) {
  const OpAttributes& a = op.attributes;
  const Value x = e.tile(op.reads[0]);
  const Value y = e.fresh("sum");
  e.emit(HeadSum{y, x, a.heads / a.kv_heads, a.head_width});
  e.produce(op.writes[0], y);
}

// Each part goes to its columns.
void concat(Emitter& e, const Op& op) {
  Operand to = op.writes[0];
  for (const Operand& part : op.reads) {
    to.cols = part.cols;
    e.produce(to, e.tile(part));
    to.col_begin += part.cols;
  }
}

}  // namespace

bool emit_backward_op(Emitter& e, const Op& op) {
  switch (op.kind) {
    case OpKind::rms_norm_backward:
    case OpKind::layer_norm_backward:
      return norm_backward(e, op), true;
    case OpKind::norm_weight_grad:
      return norm_weight_grad(e, op), true;
    case OpKind::norm_apply:
      return norm_apply(e, op), true;
    case OpKind::norm_backward_deferred:
      return norm_backward_deferred(e, op), true;
    case OpKind::row_dot_partial:
      return row_dot_partial(e, op), true;
    case OpKind::row_dot_finish:
      return row_dot_finish(e, op), true;
    case OpKind::col_stats_partial:
      return col_stats_partial(e, op), true;
    case OpKind::col_stats_finish: {
      const Value sum = e.row_reduce(ReduceFn::sum, e.tile(op.reads[0]), "s");
      return e.produce(op.writes[0], sum, true), true;
    }
    case OpKind::column_sum: {
      const Value sum = e.column_sum(e.tile(op.reads[0]), "s");
      return e.produce(op.writes[0], sum, true, Axis::cols), true;
    }
    case OpKind::rope_backward:
      return rope_backward(e, op), true;
    case OpKind::swiglu_backward:
      return swiglu_backward(e, op), true;
    case OpKind::gelu_backward:
      return gelu_backward(e, op), true;
    case OpKind::silu_backward:
      return silu_backward(e, op), true;
    case OpKind::softmax_backward:
      return softmax_backward(e, op), true;
    case OpKind::softmax_backward_delta:
      return softmax_backward_delta(e, op), true;
    case OpKind::softmax_recompute:
      return softmax_recompute(e, op), true;
    case OpKind::attention_backward_dot:
      return attention_backward_dot(e, op), true;
    case OpKind::head_sum:
      return head_sum(e, op), true;
    case OpKind::concat:
      return concat(e, op), true;
    case OpKind::cube: {
      const Value x = e.tile_or_row(op.reads[0]);
      const Value square = e.map(MapFn::square, {x}, "x2");
      return e.produce(op.writes[0], e.map(MapFn::mul, {square, x}, "x3")), true;
    }
    case OpKind::scale: {
      const Value x = e.tile_or_row(op.reads[0]);
      const Value y = e.map(MapFn::scale_by_constant, {x}, "y", op.attributes.scalar);
      return e.produce(op.writes[0], y), true;
    }
    case OpKind::expand_rows: {
      const Value r = e.per_row(op.reads[0], "r");
      const Value y = e.map(MapFn::scale_by_constant, {r}, "r", op.attributes.scalar);
      return e.produce(op.writes[0], y), true;
    }
    default:
      return false;
  }
}

Extent extent_of(const Op& op) {
  const Operand& x = op.reads[0];
  const Operand& y = op.writes[0];
  switch (op.kind) {
    case OpKind::row_stats_partial:
    case OpKind::row_dot_partial:
    case OpKind::col_stats_partial:
    case OpKind::norm_weight_grad:
    case OpKind::column_sum:
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_partial:
    case OpKind::cross_entropy_finish:
      return {x.rows, x.cols};
    case OpKind::negate_half:
    case OpKind::embedding:
    case OpKind::embedding_backward:
      return {y.rows, y.cols};
    case OpKind::swiglu:
      return {y.rows, op.attributes.pairs_interleaved ? x.cols : y.cols};
    case OpKind::swiglu_backward:
      return {y.rows, op.attributes.pairs_interleaved ? y.cols : x.cols};
    case OpKind::concat: {
      std::int64_t widest = 0;
      for (const Operand& part : op.reads) widest = std::max(widest, part.cols);
      return {y.rows, widest};
    }
    default:
      return {y.rows, std::max(x.cols, y.cols)};
  }
}

}  // namespace fuseline
