// The parameters of an epilogue's fields (cuda/emit/fields.h) as the host fills them in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/driver/driver.h"
#include "cuda/kernels/batch.cuh"

namespace fuseline::cuda {

// As the device's structs lay them out (epilogue/operands.cuh, vector.cuh, reduce.cuh, batch.cuh).
struct MappedParameter {
  TensorMap map;
  std::uint64_t data;
  std::int32_t ld_or_count, begin_or_cols;
  gpu::BatchPlace place{};  // of tiles that are stored
};
struct MappedRuns {
  alignas(64) MappedParameter tile;
  alignas(64) std::int32_t run;
  std::int32_t step;
};
static_assert(offsetof(MappedRuns, run) == 192 && sizeof(MappedRuns) == 256);
struct GroupsParameter {
  std::uint64_t data;
  std::int32_t ld, run, step;
};
struct RowsParameter {
  std::uint64_t data;
  std::int32_t ld;
};
struct TableParameter {
  std::uint64_t data;
  std::int32_t period, cols;
};
struct SequenceParameter {
  std::uint64_t data;
  std::int32_t ld, tokens;
};

}  // namespace fuseline::cuda
