// Blocks of families beyond LLaMA and GPT, built by hand.
#pragma once

#include "tests/sim/block_by_hand.h"

namespace fuseline::test {

// Qwen3: norms of every head of Q and K between the product that makes them and their rotation.
inline Graph qwen3_like(const BlockSizes& s) {
  BlockByHand b(s);
  const Pairs pairs{.head_width = s.width};
  const HeadNorm norm{.head_width = s.width, .eps = 1e-6};
  const Operand x = b.tensor("x", Role::input, s.rows(), s.model);
  const Operand qkv = b.linear("qkv", b.rms_norm("norm1", x), s.q() + 2 * s.kv());
  const Operand qn =
      b.one("norm_q", operators::head_norm,
            {b.columns(qkv, 0, s.q()), b.weight("w_norm_q", 1, s.width)}, s.q(), norm);
  const Operand kn =
      b.one("norm_k", operators::head_norm,
            {b.columns(qkv, s.q(), s.kv()), b.weight("w_norm_k", 1, s.width)}, s.kv(), norm);
  const Operand y = b.attention(b.rope("rope_q", qn, pairs), b.rope("rope_k", kn, pairs),
                                b.columns(qkv, s.q() + s.kv(), s.kv()), b.attention_shape());
  const Operand h = b.residual("h", x, b.linear("oproj", y, s.model));
  const Operand gu = b.linear("gate_up", b.rms_norm("norm2", h), 2 * s.inner);
  const Operand act = b.one("swiglu", operators::swiglu, {gu}, s.inner, Pairs{});
  b.residual("y", h, b.linear("down", act, s.model), true);
  return b.graph;
}

// Gemma 2: norms before and behind each branch, GeGLU, attention in a window with capped scores (0:
// not capped).
inline Graph gemma2_like(const BlockSizes& s, double softcap) {
  BlockByHand b(s);
  const Pairs pairs{.head_width = s.width};
  const Operand x = b.tensor("x", Role::input, s.rows(), s.model);
  const Operand qkv = b.linear("qkv", b.rms_norm("norm1", x), s.q() + 2 * s.kv());
  AttentionShape a = b.attention_shape();
  a.softcap = softcap;
  a.window = 20;
  const Operand y = b.attention(b.rope("rope_q", b.columns(qkv, 0, s.q()), pairs),
                                b.rope("rope_k", b.columns(qkv, s.q(), s.kv()), pairs),
                                b.columns(qkv, s.q() + s.kv(), s.kv()), a);
  const Operand h = b.residual("h", x, b.rms_norm("norm2", b.linear("oproj", y, s.model)));
  const Operand gu = b.linear("gate_up", b.rms_norm("norm3", h), 2 * s.inner);
  const Operand act = b.one("geglu", operators::geglu, {gu}, s.inner, Pairs{});
  b.residual("y", h, b.rms_norm("norm4", b.linear("down", act, s.model)), true);
  return b.graph;
}

// DiT and SD3: AdaLN, whose condition gives every sequence two scales, shifts and gates. `centred`:
// LayerNorm, else RMSNorm, without a weight.
inline Graph modulated_block(const BlockSizes& s, bool centred) {
  BlockByHand b(s);
  const std::int64_t D = s.model;
  const Sequences rows{.batch = s.batch, .tokens = s.tokens};
  const Normalise norm{.eps = 1e-6, .centred = centred};
  const Operand x = b.tensor("x", Role::input, s.rows(), D);
  const Operand cond = b.tensor("cond", Role::input, s.batch, D);
  const Operand silu = b.tensor("silu", Role::activation, s.batch, D);
  const Operand ada = b.tensor("ada", Role::activation, s.batch, 6 * D);
  b.op("silu", operators::silu, {cond}, {silu});
  b.op("ada", operators::gemm, {silu, b.weight("w_ada", 6 * D, D)}, {ada});
  const auto part = [&](std::int64_t i) { return b.columns(ada, i * D, D); };
  const Operand xn = b.one("norm1", operators::normalise, {x}, D, norm);
  const Operand xm = b.one("modulate1", operators::modulate, {xn, part(1), part(0)}, D, rows);
  const Operand qkv = b.linear("qkv", xm, s.q() + 2 * s.kv());
  AttentionShape a = b.attention_shape();
  a.causal = false;
  const HeadNorm heads{.head_width = s.width, .eps = 1e-6};
  const Operand q = b.one("norm_q", operators::head_norm,
                          {b.columns(qkv, 0, s.q()), b.weight("w_q", 1, s.width)}, s.q(), heads);
  const Operand k =
      b.one("norm_k", operators::head_norm,
            {b.columns(qkv, s.q(), s.kv()), b.weight("w_k", 1, s.width)}, s.kv(), heads);
  const Operand y = b.attention(q, k, b.columns(qkv, s.q() + s.kv(), s.kv()), a);
  const Operand o = b.linear("oproj", y, D);
  const Operand h = b.one("gate1", operators::gate_add, {x, o, part(2)}, D, rows);
  const Operand hn = b.one("norm2", operators::normalise, {h}, D, norm);
  const Operand hm = b.one("modulate2", operators::modulate, {hn, part(4), part(3)}, D, rows);
  const Operand act = b.one("gelu", operators::gelu, {b.linear("up", hm, s.inner)}, s.inner);
  const Operand out = b.tensor("y", Role::output, s.rows(), D);
  b.op("gate2", operators::gate_add, {h, b.linear("down", act, D), part(5)}, {out}, rows);
  return b.graph;
}

// GPT-J and Falcon: attention and MLP side by side behind one norm.
inline Graph parallel_block(const BlockSizes& s, const Pairs& pairs) {
  BlockByHand b(s);
  const Operand x = b.tensor("x", Role::input, s.rows(), s.model);
  const Operand xn = b.layer_norm("norm", x);
  const Operand qkv = b.linear("qkv", xn, s.q() + 2 * s.kv());
  const Operand q = b.rope("rope_q", b.columns(qkv, 0, s.q()), pairs);
  const Operand k = b.rope("rope_k", b.columns(qkv, s.q(), s.kv()), pairs);
  const Operand y = b.attention(q, k, b.columns(qkv, s.q() + s.kv(), s.kv()), b.attention_shape());
  const Operand o = b.linear("oproj", y, s.model);
  const Operand up = b.linear("up", xn, s.inner);
  const Operand act = b.one("gelu", operators::gelu, {up}, s.inner);
  const Operand down = b.linear("down", act, s.model);
  b.residual("y", b.residual("h", x, o), down, true);
  return b.graph;
}

}  // namespace fuseline::test
