#include "model/operators/support/lowering.h"

#include <algorithm>

#include "model/operators/operator_table.h"

namespace fuseline {

void unary(Emitter& e, const Op& op, MapFn fn, const char* name, double constant) {
  const Value x = e.tile_or_row(op.reads[0]);
  e.produce(op.writes[0], e.map(fn, {x}, name, constant));
}

void binary(Emitter& e, const Op& op, MapFn fn, const char* name) {
  const Value x = e.tile_or_row(op.reads[0]);
  const Value z = e.tile_or_row(op.reads[1]);
  e.produce(op.writes[0], e.map(fn, {x, z}, name));
}

void by_slope(Emitter& e, const Op& op, MapFn slope) {
  const Value dy = e.tile(op.reads[0]);
  const Value v = e.map(slope, {e.tile(op.reads[1])}, "v");
  e.produce(op.writes[0], e.map(maps::mul, {dy, v}, "dx"));
}

Operand column(const Operand& o, std::int64_t i) {
  Operand one = o;
  one.col_begin += i;
  one.cols = 1;
  return one;
}

Operand half(Operand o, bool upper) {
  o.cols /= 2;
  if (upper) o.col_begin += o.cols;
  return o;
}

void product_mainloop(Emitter& e, const Op& op, bool interleaved) {
  const GemmShape shape = gemm_shape(op);
  GemmMainloop m;
  m.a = op.reads[0];
  m.b = op.reads[1];
  m.M = shape.M;
  m.N = shape.N;
  m.K = shape.K;
  m.a_is_km = shape.a_is_km;
  m.b_is_kn = shape.b_is_kn;
  m.groups = shape.groups;
  m.depths = shape.depths;
  m.batch = std::max<std::int64_t>(1, std::ssize(shape.depths));
  m.weight = shape.weight;
  m.activation = shape.activation;
  m.a_scale = activation_scale(op);
  m.beside_b.assign(op.reads.begin() + 2, op.reads.end() - (m.a_scale ? 1 : 0));
  m.interleaved = interleaved;
  e.set_mainloop(m, m.N);
  e.produce_result(op.writes[0]);
}

namespace {

GemmMainloop product_over_heads(const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  GemmMainloop m;
  m.a = op.reads[0];
  m.b = op.reads[1];
  m.batch = a.batch * a.heads;
  return m;
}

}  // namespace

GemmMainloop queries_with_keys(const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  GemmMainloop m = product_over_heads(op);
  m.M = a.q_tokens;
  m.N = op.reads[1].rows / a.batch;
  m.K = op.reads[0].cols / a.heads;
  return m;
}

GemmMainloop scores_with_values(const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  GemmMainloop m = product_over_heads(op);
  m.M = a.q_tokens;
  m.N = op.writes[0].cols / a.heads;
  m.K = op.reads[0].cols;
  m.b_is_kn = true;
  return m;
}

GemmMainloop scores_with_queries(const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  GemmMainloop m = product_over_heads(op);
  m.M = op.reads[0].cols;
  m.N = op.reads[1].cols / a.heads;
  m.K = a.q_tokens;
  m.a_is_km = m.b_is_kn = true;
  m.summed = a.heads / a.kv_heads;
  return m;
}

void heads_result(Emitter& e, const Op& op, const GemmMainloop& mainloop, bool scaled) {
  e.set_mainloop(mainloop, mainloop.N);
  if (!scaled) return e.produce_result(op.writes[0]);
  e.produce(op.writes[0],
            e.map(maps::scale_by_constant, {0}, "s", op.attributes.as<AttentionShape>().scale));
}

}  // namespace fuseline
