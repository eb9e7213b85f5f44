// Parameters of the attention kernels as the device's structs lay them out (kernels/attention): the
// sources assert their sizes, the host fills them in.
#pragma once

#include <cstdint>

#include "cuda/driver/driver.h"
#include "cuda/kernels/attention/shape.cuh"

namespace fuseline::cuda {

using Address = std::uint64_t;

struct AttentionForwardArguments {  // AttentionForwardArgs
  TensorMap q, k, v, bias;
  Address y;
  std::int64_t y_ld;
  Address log_sum_exp;
  gpu::AttentionShape shape;
  gpu::AttentionOrder order;
  Address tickets;
  std::int32_t log_sum_exp_ld;
};

struct ScoreBiasArguments {  // ScoreBias
  Address data;
  std::int64_t ld;
};

struct AttentionDecodeArguments {  // AttentionDecodeArgs
  Address q, k, v;
  std::int64_t q_ld, k_ld, v_ld, y_ld;
  Address y, log_sum_exp;
  gpu::AttentionShape shape;
  std::int32_t splits;
  Address partial, arrivals;
  std::int32_t log_sum_exp_ld, scale_ld;
  Address k_scale, v_scale;
  ScoreBiasArguments bias;
};

struct AttentionWideArguments {  // AttentionWideArgs
  Address q, k;
  std::int64_t q_ld, k_ld, y_ld;
  Address y, log_sum_exp;
  gpu::AttentionShape shape;
  std::int32_t splits;
  Address partial;
  std::int32_t log_sum_exp_ld;
};

struct AttentionOperandArguments {  // AttentionOperands
  Address q, k, v, dy;
  std::int64_t q_ld, k_ld, v_ld, dy_ld;
};

struct GenericForwardArguments {  // GenericForwardArgs
  AttentionOperandArguments in;
  Address y;
  std::int64_t y_ld;
  Address log_sum_exp;
  gpu::AttentionShape shape;
  gpu::AttentionOrder order;
  std::int32_t log_sum_exp_ld;
  ScoreBiasArguments bias;
};

struct AttentionGradientArguments {  // AttentionGradientArgs
  TensorMap stay_1, stay_2, move_1, move_2;
  Address log_sum_exp, delta, out_1, out_2;
  std::int64_t out_1_ld, out_2_ld;
  gpu::AttentionShape shape;
  gpu::AttentionOrder order;
  Address tickets;
  std::int32_t per_query_head;
  std::int32_t log_sum_exp_ld, delta_ld;
};

struct GenericGradientArguments {  // GenericGradientArgs
  AttentionOperandArguments in;
  Address log_sum_exp, delta, out;
  std::int64_t out_ld;
  gpu::AttentionShape shape;
  gpu::AttentionOrder order;
  std::int32_t per_query_head;
  std::int32_t log_sum_exp_ld, delta_ld;
  ScoreBiasArguments bias;
};

struct AttentionRowsArguments {  // AttentionRows
  Address from, to;
  std::int64_t from_ld, to_ld;
  std::int32_t heads;
  std::int32_t pairs;  // Pairs: none, adjacent, apart
  std::int32_t to_rows, to_first;
  std::int32_t distance, rotated;
};
struct AttentionPrologueArguments {  // AttentionPrologueArgs
  static constexpr int most_parts = 4;
  AttentionRowsArguments parts[most_parts];
  Address cos, sin;
  std::int64_t table_ld;
  std::int32_t period, count, batch, tokens;
};

}  // namespace fuseline::cuda
