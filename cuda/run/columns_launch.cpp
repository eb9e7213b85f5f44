#if FUSELINE_HAS_CUDA

#include "cuda/run/columns_launch.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "cuda/run/gemm_fields.h"
#include "cuda/run/kernel_function.h"
#include "cuda/run/parameters.h"
#include "sim/kernels/codes_columns.h"

namespace fuseline::cuda {

namespace {

// StripSums of kernels/sm90/columns_strip.cuh.
struct StripSumsParameter {
  std::uint64_t sums = 0, counters = 0;
};

// With the workspace that it points to: for each sum and 128 columns a number of every row of
// every strip, and a counter.
StripSumsParameter strip_sums(const Device& device, std::int64_t row_sums, std::int64_t cols,
                              std::vector<DeviceBuffer>& workspaces) {
  const std::int64_t places = row_sums * ceil_div(cols, partial_tile);
  workspaces.push_back(
      device.allocate(Bytes(places * partial_tile / kColumnsStrip * kColumnsRows * 4)));
  DeviceBuffer counters = device.allocate(Bytes(places * 4));
  counters.fill(0);
  const StripSumsParameter parameter{workspaces.back().address(), counters.address()};
  workspaces.push_back(std::move(counters));
  return parameter;
}

// CodesColumnsArgs of kernels/sm90/codes_columns.cuh.
std::vector<std::byte> columns_parameters(const LaunchContext& context,
                                          const GemmKernelSource& kernel, const GemmMainloop& gemm,
                                          std::vector<DeviceBuffer>& workspaces) {
  const GemmArguments layout = gemm_arguments(kernel);
  const std::vector<std::int64_t>& at = layout.whole.offsets;
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.whole.whole.size));
  const GpuMatrix a = context.tensors.matrix(gemm.a);
  const GpuMatrix scale = context.tensors.matrix(gemm.beside_b.at(0));
  FUSELINE_ASSERT(a.address % 16 == 0 && a.row_bytes % 16 == 0 &&
                      (!gemm.weight.scaled_within_rows() ||
                       (scale.address % 16 == 0 && scale.row_bytes % 16 == 0)),
                  "rows start at multiples of 16 bytes");
  GpuMatrix codes = context.tensors.matrix(gemm.b);
  codes.cols = codes.cols * size_of(codes.type);
  codes.type = Dtype::int8;
  put(bytes, at[0],
      map_of(context.device, codes, static_cast<int>(kernel.config.tile_n),
             static_cast<int>(kColumnsBoxBytes), 128));
  const std::uint64_t pointers[2] = {a.address, scale.address};
  put(bytes, at[1], pointers);
  if (kernel.row_sums > 0)
    put(bytes, at[2], strip_sums(context.device, kernel.row_sums, gemm.N, workspaces));
  const std::int32_t numbers[4] = {static_cast<std::int32_t>(gemm.M),
                                   static_cast<std::int32_t>(gemm.N),
                                   static_cast<std::int32_t>(a.row_bytes), leading(scale)};
  put(bytes, at[3], numbers);
  put_fields(bytes, at[4], layout.epilogue, context, kernel, gemm);
  return bytes;
}

}  // namespace

Launches prepare_columns(const LaunchContext& context, const GemmKernelSource& kernel,
                         const Program& program) {
  const auto& gemm = std::get<GemmMainloop>(program.mainloop);
  KernelFunction code = load_function(context, kernel.source, kernel.function);
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(ceil_div(gemm.N, kernel.config.tile_n));
  shape.block[0] = static_cast<unsigned>(kColumnsThreads);
  shape.shared_bytes = code.shared_bytes;
  std::vector<DeviceBuffer> workspaces;
  KernelParameters parameters{columns_parameters(context, kernel, gemm, workspaces)};
  return one_launch(std::move(code.function), shape, std::move(parameters), std::move(workspaces));
}

}  // namespace fuseline::cuda

#endif
