// GPT-like block: LayerNorm, QKV, attention without RoPE, output projection, residual; LayerNorm,
// up projection with GELU, down projection, residual.
#include <utility>

#include "model/blocks/block_parts.h"
#include "model/operators/all_operators.h"

namespace fuseline {

Graph build_gpt_block(const ModelConfig& config, const Workload& workload) {
  BlockParts parts(config, workload);
  const std::int64_t M = workload.rows();
  const std::int64_t q_width = config.H * config.d;
  const std::int64_t kv_width = config.Hkv * config.d;

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
  const TensorId attn = parts.attention(parts.graph.columns(qkv, 0, q_width),
                                        parts.graph.columns(qkv, q_width, kv_width),
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
  const TensorId up = parts.linear(xn2, {.op = "up",
                                         .weight = "up",
                                         .result = "up",
                                         .site = "gateup",
                                         .width_symbol = "F",
                                         .inner_symbol = "D",
                                         .width = config.F,
                                         .bias = config.mlp_bias});
  const TensorId act = parts.tensor("act", "[M, F]", Role::activation, M, config.F);
  parts.op("gelu", operators::gelu, "act", {parts.whole(up)}, {parts.whole(act)});
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
