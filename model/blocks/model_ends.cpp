// The layers around the blocks: embedding, final norm, LM head and the loss.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/blocks/block_parts.h"
#include "model/operators/all_operators.h"

namespace fuseline {

namespace {

// Numbers of tokens, 32-bit integers; fp32 stands for their four bytes.
TensorId token_numbers(BlockParts& parts, const std::string& name) {
  return parts.graph.add_tensor({.name = name,
                                 .symbol = "[M, 1]",
                                 .role = Role::input,
                                 .dtype = Dtype::fp32,
                                 .rows = parts.workload.rows(),
                                 .cols = 1});
}

Graph finished(BlockParts& parts) {
  if (parts.workload.phase == Phase::train) return differentiate(parts.graph);
  return std::move(parts.graph);
}

}  // namespace

Graph build_entry(const ModelConfig& config, const Workload& workload) {
  FUSELINE_ASSERT(config.V > 0, config.name);
  BlockParts parts(config, workload);
  const std::int64_t M = workload.rows();
  const TensorId ids = token_numbers(parts, "ids");
  Operand rows = parts.whole(parts.tensor("w_embed", "[V, D]", Role::weight, config.V, config.D));
  rows.rows = std::min(M, config.V);
  std::vector<Operand> reads{parts.whole(ids), rows};
  if (config.family == Family::gpt) {
    const std::int64_t positions = std::max(config.max_positions, workload.kv_tokens());
    Operand new_positions =
        parts.whole(parts.tensor("w_position", "[P, D]", Role::weight, positions, config.D));
    new_positions.rows = workload.seq;
    new_positions.at.begin = workload.kv_tokens() - workload.seq;
    reads.push_back(new_positions);
  }
  const TensorId x = parts.tensor("x", "[M, D]", Role::output, M, config.D);
  parts.op("embedding", operators::embedding, "embedding", std::move(reads), {parts.whole(x)},
           Positions{workload.seq});
  return finished(parts);
}

Graph build_exit(const ModelConfig& config, const Workload& workload) {
  FUSELINE_ASSERT(config.V > 0, config.name);
  BlockParts parts(config, workload);
  const bool train = workload.phase == Phase::train;
  const bool last_tokens = workload.phase == Phase::forward;
  const std::int64_t rows = last_tokens ? workload.batch : workload.rows();
  const std::string rows_symbol = last_tokens ? "B" : "M";
  const TensorId x = parts.tensor("x", "[" + rows_symbol + ", D]", Role::input, rows, config.D);
  const TensorId xn = parts.norm("final_norm", x, "xn");
  const TensorId logits = parts.linear(xn, {.op = "lm_head",
                                            .weight = "lm_head",
                                            .result = "logits",
                                            .site = "lm_head",
                                            .width_symbol = "V",
                                            .inner_symbol = "D",
                                            .width = config.V,
                                            .result_role = train ? Role::activation : Role::output,
                                            .rows_symbol = rows_symbol});
  if (train) {
    const TensorId targets = token_numbers(parts, "targets");
    const TensorId loss = parts.graph.add_tensor({.name = "loss",
                                                  .symbol = "[M, 1]",
                                                  .role = Role::output,
                                                  .dtype = Dtype::fp32,
                                                  .rows = rows,
                                                  .cols = 1});
    parts.op("loss", operators::cross_entropy, "loss", {parts.whole(logits), parts.whole(targets)},
             {parts.whole(loss)});
  }
  return finished(parts);
}

}  // namespace fuseline
