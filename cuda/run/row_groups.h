// Where groups of rows end, in the GPU's memory (cuda/kernels/ragged.cuh).
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/driver/driver.h"
#include "cuda/kernels/ragged.cuh"

namespace fuseline::cuda {

struct RowGroupsParameter {  // RowGroups of kernels/ragged.cuh
  std::uint64_t ends;
  std::int32_t count;
};
static_assert(sizeof(RowGroupsParameter) == sizeof(gpu::RowGroups));

// Groups of these lengths behind each other; `memory` gets what they point to.
RowGroupsParameter row_groups(const Device& device, const std::vector<std::int64_t>& lengths,
                              std::vector<DeviceBuffer>& memory);

}  // namespace fuseline::cuda
