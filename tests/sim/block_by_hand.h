// Pieces of blocks that several families share, for proofs of blocks that are built by hand.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/backward.h"
#include "model/operators/all_operators.h"
#include "tests/sim/plan_proof.h"

namespace fuseline::test {

// Sizes of a block of attention and an MLP; odd ones by default.
struct BlockSizes {
  std::int64_t batch = 2, tokens = 37;  // B, T
  std::int64_t model = 40;              // D
  std::int64_t inner = 52;              // F
  std::int64_t heads = 4, kv_heads = 2, width = 8;

  [[nodiscard]] std::int64_t rows() const { return batch * tokens; }
  [[nodiscard]] std::int64_t q() const { return heads * width; }
  [[nodiscard]] std::int64_t kv() const { return kv_heads * width; }
};

class BlockByHand : public GraphByHand {
 public:
  explicit BlockByHand(const BlockSizes& sizes) : s(sizes) {}

  Operand activation(const std::string& name, std::int64_t cols) {
    return tensor(name, Role::activation, s.rows(), cols);
  }
  Operand weight(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return tensor(name, Role::weight, rows, cols);
  }
  Operand columns(const Operand& of, std::int64_t begin, std::int64_t count) {
    Operand part = of;
    part.col_begin += begin;
    part.cols = count;
    return part;
  }
  // y = x W^T, into `to` when it is given.
  Operand linear(const std::string& name, const Operand& x, std::int64_t cols) {
    const Operand y = activation(name, cols);
    op(name, operators::gemm, {x, weight("w_" + name, cols, x.cols)}, {y});
    return y;
  }
  Operand one(const std::string& name, OpKind kind, std::vector<Operand> reads, std::int64_t cols,
              const Attributes& attributes = {}) {
    const Operand y = activation(name, cols);
    op(name, kind, std::move(reads), {y}, attributes);
    return y;
  }
  Operand rms_norm(const std::string& name, const Operand& x) {
    return one(name, operators::rms_norm, {x, weight("w_" + name, 1, x.cols)}, x.cols,
               NormEps{1e-5});
  }
  Operand layer_norm(const std::string& name, const Operand& x) {
    return one(name, operators::layer_norm,
               {x, weight("w_" + name, 1, x.cols), weight("b_" + name, 1, x.cols)}, x.cols,
               NormEps{1e-5});
  }
  Operand rope(const std::string& name, const Operand& x, const Pairs& pairs) {
    if (cos_.cols == 0) {
      cos_ = tensor("cos", Role::table, s.tokens, pairs.turned());
      sin_ = tensor("sin", Role::table, s.tokens, pairs.turned());
    }
    return one(name, operators::rope, {x, cos_, sin_}, x.cols, pairs);
  }
  [[nodiscard]] AttentionShape attention_shape() const {
    AttentionShape a;
    a.heads = s.heads;
    a.kv_heads = s.kv_heads;
    a.head_width = s.width;
    a.batch = s.batch;
    a.q_tokens = a.kv_tokens = s.tokens;
    a.causal = true;
    a.scale = 1 / std::sqrt(static_cast<double>(s.width));
    return a;
  }
  Operand attention(const Operand& q, const Operand& k, const Operand& v, const AttentionShape& a) {
    const std::int64_t rows = s.batch * s.heads * s.tokens;
    const Operand scores = tensor("scores", Role::activation, rows, s.tokens);
    const Operand probs = tensor("probs", Role::activation, rows, s.tokens);
    op("scores", operators::attention_scores, {q, k}, {scores}, a);
    op("softmax", operators::softmax, {scores}, {probs}, a);
    return one("context", operators::attention_context, {probs, v}, s.q(), a);
  }
  // h = x + y, the block's output when it is called so.
  Operand residual(const std::string& name, const Operand& x, const Operand& y,
                   bool output = false) {
    const Operand h = tensor(name, output ? Role::output : Role::activation, x.rows, x.cols);
    op(name, operators::residual_add, {x, y}, {h});
    return h;
  }

  BlockSizes s;

 private:
  Operand cos_, sin_;
};

// Under every policy, and every policy that trains: legal, predicted at or above the limits,
// computed with the bytes that are predicted and the results of the reference.
inline void expect_block_proved(const Graph& forward, const std::string& what) {
  const Proof proof(forward);
  for (const std::string& policy : executor::all_policies())
    proof.of(make_plan(policy, forward), std::string(policy).append(" ").append(what));
}
inline void expect_block_trained(const Graph& forward, const std::string& what) {
  const Graph trained = differentiate(forward);
  const Proof proof(trained);
  for (const PolicyInfo& policy : policies())
    if (policy.trains) proof.of(make_plan(policy.name, trained), policy.name + " train " + what);
}

}  // namespace fuseline::test
