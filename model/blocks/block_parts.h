// The pieces that the block builders share. They add tensors and operators to a graph; names and
// sites are those that plans and reports show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/graph.h"
#include "model/operators/attributes.h"

namespace fuseline {

class BlockParts {
 public:
  BlockParts(const ModelConfig& config, const Workload& workload);

  TensorId tensor(const std::string& name, const std::string& symbol, Role role, std::int64_t rows,
                  std::int64_t cols);
  void op(const std::string& name, OpKind kind, const std::string& site, std::vector<Operand> reads,
          std::vector<Operand> writes, const Attributes& attributes = {});

  // RMSNorm or LayerNorm of x [rows, D]; weights w_<name> and, for LayerNorm, b_<name>, both [1,
  // D].
  TensorId norm(const std::string& name, TensorId x, const std::string& result);

  // y = x w^T, with a bias_add operator of its own when asked for. Shapes x [M, K], w_<weight> [N,
  // K], b_<weight> [1, N], y [M, N]; with a bias the GEMM writes <result>_mm.
  struct Linear {
    std::string op;
    std::string weight;
    std::string result;
    std::string site;
    std::string width_symbol;  // N in shape letters
    std::string inner_symbol;  // K in shape letters
    std::int64_t width = 0;
    bool bias = false;
    Role result_role = Role::activation;
    std::string rows_symbol = "M";
  };
  TensorId linear(TensorId x, const Linear& spec);

  // In decode, appends k and v to the caches; then scores, softmax and context. q [M, H·d],
  // k, v [M, Hkv·d] are slices. The result attn is [M, H·d].
  TensorId attention(const Operand& q, const Operand& k, const Operand& v);

  TensorId residual(const std::string& name, TensorId branch, TensorId stream,
                    const std::string& result, Role role);

  [[nodiscard]] AttentionShape attention_attributes() const;
  [[nodiscard]] std::string query_symbol() const;  // "D" when H·d = D
  [[nodiscard]] std::string qkv_symbol() const;    // "3D" for plain multi-head attention
  [[nodiscard]] Operand whole(TensorId id) const { return graph.whole(id); }

  const ModelConfig& config;
  const Workload& workload;
  Graph graph;
};

// The builders of the two families; build_block chooses.
Graph build_llama_block(const ModelConfig& config, const Workload& workload);
Graph build_gpt_block(const ModelConfig& config, const Workload& workload);

}  // namespace fuseline
