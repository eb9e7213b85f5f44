// The fields of a GEMM's epilogue among the kernel's parameters, for all of its mainloops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/emit/kernel_source.h"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

// Whether the kernel's epilogue moves tiles with Hopper's copy engine, which finds them by maps.
bool uses_maps(const GemmConfig& config);

// `at`: where the epilogue begins in `bytes`; `layout`: of its fields, from there on.
void put_fields(std::vector<std::byte>& bytes, std::int64_t at, const StructLayout& layout,
                const LaunchContext& context, const GemmKernelSource& kernel,
                const GemmMainloop& gemm);

}  // namespace fuseline::cuda
