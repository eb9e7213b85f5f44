#if FUSELINE_HAS_CUDA

#include "cuda/run/batched_matrix.h"

#include "base/error.h"
#include "cuda/run/parameters.h"

namespace fuseline::cuda {

BatchedMatrix batched_matrix(const LaunchContext& context, const Operand& operand,
                             std::int64_t batch, std::int64_t height, std::int64_t width) {
  const ElementSize size = size_of(context.plan.graph.tensor(operand.tensor).dtype);
  BatchedMatrix m;
  m.matrix = context.tensors.all_rows(operand);
  m.matrix.address += static_cast<std::uint64_t>(operand.at.begin * m.matrix.row_bytes);
  m.matrix.rows = height;
  m.matrix.cols = width;
  std::int64_t stack_rows = height;
  if (operand.at.run > 0) {
    FUSELINE_ASSERT(operand.at.run == height, "an entry of the stack is a run of rows");
    stack_rows = operand.at.step;
  }
  m.stacked = operand.rows / height;
  const std::int64_t beside = operand.cols / width;
  FUSELINE_ASSERT(m.stacked >= 1 && beside >= 1 && batch % m.stacked == 0,
                  "an operand holds its batch");
  FUSELINE_ASSERT(m.matrix.address % 16 == 0 && (beside == 1 || width * size % 16 == 0),
                  "matrices start at multiples of 16 bytes");
  m.place.share = static_cast<int>(batch / m.stacked);
  m.place.beside = static_cast<int>(beside);
  m.place.stack_step = stack_rows * leading(m.matrix);
  m.place.head_step = width;
  return m;
}

TensorMap map_of(const Device& device, const BatchedMatrix& m, int box_rows, int box_cols,
                 int swizzle) {
  const ElementSize size = size_of(m.matrix.type);
  return device.tensor_map(
      {.type = tensor_type(m.matrix.type),
       .address = m.matrix.address,
       .rows = m.matrix.rows,
       .cols = m.matrix.cols,
       .row_bytes = m.matrix.row_bytes,
       .box_rows = box_rows,
       .box_cols = box_cols,
       .swizzle = swizzle,
       .beside = m.place.beside,
       .beside_bytes = m.place.beside == 1 ? m.matrix.row_bytes : m.place.head_step * size,
       .stacked = m.stacked,
       .stacked_bytes = m.place.stack_step * size});
}

}  // namespace fuseline::cuda

#endif
