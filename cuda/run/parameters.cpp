#if FUSELINE_HAS_CUDA

#include "cuda/run/parameters.h"

namespace fuseline::cuda {

TensorType tensor_type(Dtype type) {
  switch (type) {
    case Dtype::bf16:
      return TensorType::bf16;
    case Dtype::fp16:
      return TensorType::fp16;
    case Dtype::fp32:
      return TensorType::fp32;
    case Dtype::e4m3:
    case Dtype::int8:
      return TensorType::byte;
    default:  // not_built() refuses what has them
      break;
  }
  FUSELINE_ASSERT(false, "unknown element type");
}

TensorMap map_of(const Device& device, const GpuMatrix& m, int box_rows, int box_cols, int swizzle,
                 int l2_promotion) {
  FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 16 == 0,
                  "the copy engine moves rows that start at multiples of 16 bytes");
  return device.tensor_map({.type = tensor_type(m.type),
                            .address = m.address,
                            .rows = m.rows,
                            .cols = m.cols,
                            .row_bytes = m.row_bytes,
                            .box_rows = box_rows,
                            .box_cols = box_cols,
                            .swizzle = swizzle,
                            .l2_promotion = l2_promotion});
}

std::int32_t leading(const GpuMatrix& m) {
  return static_cast<std::int32_t>(m.row_bytes / size_of(m.type));
}

}  // namespace fuseline::cuda

#endif
