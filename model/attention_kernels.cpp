#include "model/attention_kernels.h"

namespace fuseline {

namespace {

// Whole steps of K of an instruction, and sums that fit the registers: one of the way forward, two
// of the gradient of keys and values.
bool has_wgmma_width(std::int64_t columns, bool gradient) {
  return columns % 16 == 0 && 64 <= columns && columns <= (gradient ? 128 : 256);
}

}  // namespace

bool has_wgmma_attention(const AttentionMainloop& m, std::int64_t bias_columns) {
  const std::int64_t keys = m.shape.head_width, values = m.shape.v_width();
  const bool gradient = m.gradient.has_value();
  if (!has_wgmma_width(values, gradient) || !has_wgmma_width(keys, gradient)) return false;
  if (gradient) return keys == values && !m.bias && m.shape.softcap == 0;
  if (values > keys) return false;
  if (!m.bias) return true;
  constexpr std::int64_t kAligned = 8;  // elements of 16 bytes
  return keys <= 128 && bias_columns % kAligned == 0 && m.bias->col_begin % kAligned == 0;
}

std::int64_t decode_shared_bytes(const AttentionShape& shape, std::int64_t stages) {
  constexpr std::int64_t kWarps = 4, kKeys = 16, kPadding = 16, kElement = 2;
  const std::int64_t rows = kElement * (shape.head_width + shape.v_width()) + 2 * kPadding;
  return kWarps * stages * kKeys * rows;
}

std::int64_t heads_together(const AttentionShape& shape, std::int64_t tile_rows,
                            std::int64_t at_once) {
  constexpr std::int64_t kL2Share = std::int64_t{8} << 20;
  const std::int64_t heads = shape.batch * shape.heads;
  const std::int64_t tiles = ceil_div(shape.q_tokens, tile_rows);
  const std::int64_t bytes = 4 * shape.kv_tokens * shape.head_width;  // one head's keys and values
  const std::int64_t fit =
      kL2Share / std::max<std::int64_t>(1, bytes) * (shape.heads / shape.kv_heads);
  const std::int64_t even =
      shape.causal && shape.window == 0 ? ceil_div(2 * at_once, tiles + 1) : 1;
  return std::min(heads, std::max(even, std::min(fit, heads)));
}

}  // namespace fuseline
