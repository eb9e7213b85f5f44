// The parameters of an epilogue's fields (cuda/emit/fields.h) as the host fills them in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cuda/driver/driver.h"
#include "cuda/emit/fields.h"
#include "cuda/kernels/batch.cuh"
#include "cuda/run/gpu_tensors.h"

namespace fuseline::cuda {

// As the device's structs lay them out (epilogue/operands.cuh, vector.cuh, reduce.cuh, batch.cuh).
// What the device has as padding is a member here: `put` cannot clear padding with every compiler.
struct MappedParameter {
  TensorMap map;
  std::uint64_t data;
  std::int32_t ld_or_count, begin_or_cols;
  gpu::BatchPlace place{};  // of tiles that are stored
  std::uint64_t unused[3]{};
};
struct MappedRuns {
  alignas(64) MappedParameter tile;
  alignas(64) std::int32_t run;
  std::int32_t step;
  std::int32_t unused[14]{};
};
static_assert(offsetof(MappedRuns, run) == 192 && sizeof(MappedRuns) == 256);
struct GroupsParameter {
  std::uint64_t data;
  std::int32_t ld, run, step, unused = 0;
};
struct RowsParameter {
  std::uint64_t data;
  std::int32_t ld, unused = 0;
};
struct TableParameter {
  std::uint64_t data;
  std::int32_t period, cols;
};
struct SequenceParameter {
  std::uint64_t data;
  std::int32_t ld, tokens;
};

template <class... T>
inline constexpr bool have_no_padding = (std::has_unique_object_representations_v<T> && ...);
static_assert(have_no_padding<MappedParameter, MappedRuns, GroupsParameter, RowsParameter,
                              TableParameter, SequenceParameter>);
static_assert(sizeof(MappedParameter) == 192 && sizeof(RowsParameter) == 16);

// Fields that threads read and write as numbers, without a map: those of rows, tables and
// sequences.
void put_numbers(std::vector<std::byte>& bytes, std::int64_t at, const Field& field,
                 const GpuMatrix& m);

}  // namespace fuseline::cuda
