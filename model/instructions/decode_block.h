// A plan of one launch for a decode block of the LLaMA family: norm, QKV with RoPE, attention over
// a cache, output projection, residual, norm, gate and up with SwiGLU, down projection, residual.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "model/plan.h"

namespace fuseline {

// What the block's one kernel works on: sizes, and where each tensor lies.
struct DecodeBlock {
  std::int64_t batch = 0;     // B, sequences; each has one new token
  std::int64_t model = 0;     // D
  std::int64_t inner = 0;     // F
  std::int64_t heads = 0;     // H
  std::int64_t kv_heads = 0;  // Hkv
  std::int64_t width = 0;     // d
  std::int64_t context = 0;   // S, the new token included
  double scale = 0;           // of the scores
  double eps1 = 0, eps2 = 0;  // of the two norms

  Operand x, x_stats, r_norm1;
  Operand w_qkv, cos, sin;
  Operand q, new_k, new_v;      // what the first product leaves; the rows are sequences
  Operand k, v;                 // the cache, row b·S + s
  Operand attn, w_o, residual;  // the residual is x
  Operand h, h_stats, r_norm2;
  Operand w_gate_up, act, w_down;
  Operand y, y_stats;

  [[nodiscard]] std::int64_t group() const { return heads / kv_heads; }  // G, queries of a key
  [[nodiscard]] std::int64_t q_rows() const { return heads * width; }
  [[nodiscard]] std::int64_t kv_rows() const { return kv_heads * width; }
  [[nodiscard]] std::int64_t qkv_rows() const { return q_rows() + 2 * kv_rows(); }
};

// The block, or why the kernel's phases are not such a block.
std::variant<DecodeBlock, std::string> decode_block(const Graph& graph, const Kernel& kernel);

}  // namespace fuseline
