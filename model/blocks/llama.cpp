// LLaMA-like block: norm, QKV with RoPE, grouped-query attention, output projection, residual;
// norm, gate/up with SwiGLU, down projection, residual.
#include <utility>

#include "model/blocks/block_parts.h"
#include "model/operators/all_operators.h"

namespace fuseline {

Graph build_llama_block(const ModelConfig& config, const Workload& workload) {
  BlockParts parts(config, workload);
  const std::int64_t M = workload.rows();
  const std::int64_t T = workload.seq;
  const std::int64_t q_width = config.H * config.d;
  const std::int64_t kv_width = config.Hkv * config.d;
  const std::string kv_symbol = config.H == config.Hkv ? parts.query_symbol() : "Hkv·d";

  const TensorId x = parts.tensor("x", "[M, D]", Role::input, M, config.D);
  const TensorId xn1 = parts.norm("norm1", x, "xn1");
  const TensorId qkv = parts.linear(xn1, {.op = "qkv",
                                          .weight = "qkv",
                                          .result = "qkv",
                                          .site = "qkv",
                                          .width_symbol = parts.qkv_symbol(),
                                          .inner_symbol = "D",
                                          .width = config.qkv_width(),
                                          .bias = config.qkv_bias});

  const Operand cos = parts.whole(parts.tensor("cos", "[T, d]", Role::table, T, config.d));
  const Operand sin = parts.whole(parts.tensor("sin", "[T, d]", Role::table, T, config.d));
  const Pairs heads{.head_width = config.d};
  const TensorId q_rot =
      parts.tensor("q_rot", "[M, " + parts.query_symbol() + "]", Role::activation, M, q_width);
  const TensorId k_rot =
      parts.tensor("k_rot", "[M, " + kv_symbol + "]", Role::activation, M, kv_width);
  parts.op("rope_q", operators::rope, "rope", {parts.graph.columns(qkv, 0, q_width), cos, sin},
           {parts.whole(q_rot)}, heads);
  parts.op("rope_k", operators::rope, "rope",
           {parts.graph.columns(qkv, q_width, kv_width), cos, sin}, {parts.whole(k_rot)}, heads);
  const TensorId attn = parts.attention(parts.whole(q_rot), parts.whole(k_rot),
                                        parts.graph.columns(qkv, q_width + kv_width, kv_width));

  const TensorId o = parts.linear(attn, {.op = "oproj",
                                         .weight = "o",
                                         .result = "o",
                                         .site = "oproj",
                                         .width_symbol = "D",
                                         .inner_symbol = parts.query_symbol(),
                                         .width = config.D,
                                         .bias = config.out_bias});
  const TensorId h = parts.residual("residual1", o, x, "h", Role::activation);

  const TensorId xn2 = parts.norm("norm2", h, "xn2");
  const TensorId gu = parts.linear(xn2, {.op = "gate_up",
                                         .weight = "gate_up",
                                         .result = "gu",
                                         .site = "gateup",
                                         .width_symbol = "2F",
                                         .inner_symbol = "D",
                                         .width = 2 * config.F,
                                         .bias = config.mlp_bias});
  const TensorId act = parts.tensor("act", "[M, F]", Role::activation, M, config.F);
  parts.op("swiglu", operators::swiglu, "act", {parts.whole(gu)}, {parts.whole(act)});
  const TensorId dn = parts.linear(act, {.op = "down",
                                         .weight = "down",
                                         .result = "dn",
                                         .site = "down",
                                         .width_symbol = "D",
                                         .inner_symbol = "F",
                                         .width = config.D,
                                         .bias = config.mlp_bias});
  const TensorId y = parts.residual("residual2", dn, h, "y", Role::output);
  parts.graph.relate(y, Relation::carried_to_next_layer, x);
  return std::move(parts.graph);
}

}  // namespace fuseline
