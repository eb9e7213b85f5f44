// The layers around the blocks: embedding, final norm, LM head.
#include <algorithm>
#include <utility>

#include "model/blocks/block.h"
#include "model/blocks/block_parts.h"
#include "model/error.h"

namespace fuseline {

namespace {

void refuse_train(const Workload& workload) {
  if (workload.phase != Phase::train) return;
  throw InputError({.field = "--phase",
                    .value = "train",
                    .message = "the model's ends (embedding, LM head) have no backward graph",
                    .allowed = "forward, decode; train for blocks"});
}

}  // namespace

Graph build_entry(const ModelConfig& config, const Workload& workload) {
  refuse_train(workload);
  FUSELINE_ASSERT(config.V > 0, config.name);
  BlockParts parts(config, workload);
  const std::int64_t M = workload.rows();
  // Token ids are 32-bit integers; fp32 stands for their four bytes.
  const TensorId ids = parts.graph.add_tensor({.name = "ids",
                                               .symbol = "[M, 1]",
                                               .role = Role::input,
                                               .dtype = Dtype::fp32,
                                               .rows = M,
                                               .cols = 1});
  Operand rows = parts.whole(parts.tensor("w_embed", "[V, D]", Role::weight, config.V, config.D));
  rows.rows = std::min(M, config.V);
  std::vector<Operand> reads{parts.whole(ids), rows};
  if (config.family == Family::gpt) {
    const std::int64_t positions = std::max(config.max_positions, workload.kv_tokens());
    Operand new_positions =
        parts.whole(parts.tensor("w_position", "[P, D]", Role::weight, positions, config.D));
    new_positions.rows = workload.seq;
    reads.push_back(new_positions);
  }
  const TensorId x = parts.tensor("x", "[M, D]", Role::output, M, config.D);
  parts.op("embedding", OpKind::embedding, "embedding", std::move(reads), {parts.whole(x)},
           parts.attention_attributes());
  return std::move(parts.graph);
}

Graph build_exit(const ModelConfig& config, const Workload& workload) {
  refuse_train(workload);
  FUSELINE_ASSERT(config.V > 0, config.name);
  BlockParts parts(config, workload);
  const bool decode = workload.phase == Phase::decode;
  const std::int64_t rows = decode ? workload.rows() : workload.batch;
  const std::string rows_symbol = decode ? "M" : "B";
  const TensorId x = parts.tensor("x", "[" + rows_symbol + ", D]", Role::input, rows, config.D);
  const TensorId xn = parts.norm("final_norm", x, "xn");
  parts.linear(xn, {.op = "lm_head",
                    .weight = "lm_head",
                    .result = "logits",
                    .site = "lm_head",
                    .width_symbol = "V",
                    .inner_symbol = "D",
                    .width = config.V,
                    .result_role = Role::output,
                    .rows_symbol = rows_symbol});
  return std::move(parts.graph);
}

}  // namespace fuseline
