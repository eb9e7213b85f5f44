#if FUSELINE_HAS_CUDA

#include "cuda/run/rows_apart.h"

#include <utility>

#include "base/error.h"
#include "cuda/run/kernel_function.h"
#include "cuda/run/parameters.h"

namespace fuseline::cuda {

namespace {

constexpr int kThreads = 256;

struct CopyArguments {  // CopyRowsArgs of kernels/copy_rows.cuh
  std::uint64_t from, to;
  std::int64_t from_row, from_group, to_row;
  std::int32_t rows, group_rows, row_bytes;
};
static_assert(sizeof(CopyArguments) == 56);

constexpr const char* kSource = R"(#include "copy_rows.cuh"

static_assert(sizeof(fuseline::gpu::CopyRowsArgs) == 56, "the host lays out the parameters alike");

extern "C" __constant__ int copy_rows_shared_bytes = 0;

extern "C" __global__ void __launch_bounds__(256)
copy_rows(const __grid_constant__ fuseline::gpu::CopyRowsArgs args) {
  fuseline::gpu::begin_behind_the_kernel_before();
  fuseline::gpu::copy_rows_apart(args);
}
)";

}  // namespace

bool lies_apart(const Operand& operand) { return operand.at.run > 1; }

RowsApart gathered_rows(const LaunchContext& context, const Operand& operand) {
  const Tensor& tensor = context.plan.graph.tensor(operand.tensor);
  const GpuMatrix all = context.tensors.all_rows(operand);
  const std::int64_t row_bytes = operand.cols * size_of(tensor.dtype);
  const std::int64_t pitch = (row_bytes + 15) / 16 * 16;
  FUSELINE_ASSERT(all.address % 16 == 0, "rows start at multiples of 16 bytes");

  std::vector<DeviceBuffer> buffers;
  buffers.push_back(context.device.allocate(Bytes(pitch * operand.rows)));
  RowsApart result;
  result.workspace = {buffers[0].address(), pitch, operand.rows, operand.cols, tensor.dtype};
  CopyArguments a{};
  a.from = all.address + static_cast<std::uint64_t>(operand.at.begin * all.row_bytes);
  a.from_row = all.row_bytes;
  a.from_group = operand.at.step * all.row_bytes;
  a.to = result.workspace.address;
  a.to_row = pitch;
  a.rows = static_cast<std::int32_t>(operand.rows);
  a.group_rows = static_cast<std::int32_t>(operand.at.run);
  a.row_bytes = static_cast<std::int32_t>(row_bytes);

  KernelFunction code =
      load_function(context, {.name = "copy_rows.cu", .text = kSource}, "copy_rows");
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>((operand.rows * (pitch / 16) + kThreads - 1) / kThreads);
  shape.block[0] = kThreads;
  result.copy = std::make_unique<KernelLaunch>(std::move(code.function), shape,
                                               std::vector<std::vector<std::byte>>{bytes_of(a)},
                                               std::move(buffers));
  return result;
}

}  // namespace fuseline::cuda

#endif
