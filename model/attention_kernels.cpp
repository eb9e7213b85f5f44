#include "model/attention_kernels.h"

namespace fuseline {

bool has_wgmma_attention(const AttentionMainloop& m, std::int64_t bias_columns) {
  const std::int64_t keys = m.shape.head_width, values = m.shape.v_width();
  if (values != 64 && values != 128) return false;
  if (keys != 64 && keys != 128 && keys != 192) return false;
  if (m.gradient) return keys == values && !m.bias && m.shape.softcap == 0;
  if (values > keys) return false;
  if (!m.bias) return true;
  constexpr std::int64_t kAligned = 8;  // elements of 16 bytes
  return keys != 192 && bias_columns % kAligned == 0 && m.bias->col_begin % kAligned == 0;
}

}  // namespace fuseline
