// The operands of a generated stream, row or scan kernel as the bytes of its Params.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/emit/stream_fields.h"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

// `workspaces` gets what they point to beside the plan's tensors.
std::vector<std::byte> stream_arguments(const LaunchContext& context,
                                        const std::vector<StreamField>& fields,
                                        std::vector<DeviceBuffer>& workspaces);

// InternalError: below 0, or more than a kernel counts with.
std::int32_t narrow(std::int64_t n);

}  // namespace fuseline::cuda
