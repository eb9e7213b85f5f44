// Operands of products in batches: where each product of the batch finds its matrix.
#pragma once

#include <cstdint>

#include "cuda/kernels/batch.cuh"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

struct BatchedMatrix {
  GpuMatrix matrix;       // the first: [height, width]
  gpu::BatchPlace place;  // of the others
  std::int64_t stacked = 1;
};

// `batch` products on matrices of [height, width]; the same places as the executor's (corner_of in
// sim/executor/tile_interpreter.h). InternalError: the operand does not hold them, or they do not
// start at multiples of 16 bytes.
BatchedMatrix batched_matrix(const LaunchContext& context, const Operand& operand,
                             std::int64_t batch, std::int64_t height, std::int64_t width);

TensorMap map_of(const Device& device, const BatchedMatrix& m, int box_rows, int box_cols,
                 int swizzle);

}  // namespace fuseline::cuda
