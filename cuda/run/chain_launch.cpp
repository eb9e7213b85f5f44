#if FUSELINE_HAS_CUDA

#include "cuda/run/chain_launch.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"
#include "cuda/run/field_parameters.h"
#include "cuda/run/parameters.h"
#include "cuda/run/stream_arguments.h"

namespace fuseline::cuda {

namespace {

// An epilogue's field, for a kernel without the copy engine: its map stays empty.
void put_chain_field(std::vector<std::byte>& bytes, std::int64_t at, const Field& field,
                     const GpuTensors& tensors) {
  const GpuMatrix m = tensors.matrix(field.operand);
  const auto begin = static_cast<std::int32_t>(field.begin);
  const auto cols = static_cast<std::int32_t>(m.cols);
  switch (field.kind) {
    case FieldKind::tile_in:
    case FieldKind::tile_out:
      FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 16 == 0,
                      "rows start at multiples of 16 bytes");
      put(bytes, at,
          MappedParameter{
              {}, m.address, leading(m), field.kind == FieldKind::tile_in ? begin : cols});
      return;
    case FieldKind::cols_in:
      put(bytes, at, MappedParameter{{}, m.address, cols, begin});
      return;
    case FieldKind::groups_out:
      put(bytes, at,
          GroupsParameter{m.address, leading(m), static_cast<std::int32_t>(field.operand.rows), 0});
      return;
    case FieldKind::rows_in:
    case FieldKind::rows_out:
    case FieldKind::partials:
    case FieldKind::table_in:
    case FieldKind::sequence_in:
      put_numbers(bytes, at, field, m);
      return;
    case FieldKind::tile_out_runs:
      break;  // chain_not_built() refuses rows that lie apart
  }
  FUSELINE_ASSERT(false, "unknown field");
}

// h is in shared memory, and the kernel itself sets the field that stores it there.
void put_chain_epilogue(std::vector<std::byte>& bytes, std::int64_t at, const StructLayout& layout,
                        const std::vector<Field>& fields, const GpuTensors& tensors) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (tensors.has(fields[i].operand.tensor))
      put_chain_field(bytes, at + layout.offsets[i], fields[i], tensors);
}

GpuMatrix chain_operand(const GpuTensors& tensors, const Operand& o) {
  const GpuMatrix m = tensors.matrix(o);
  FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 16 == 0,
                  "rows start at multiples of 16 bytes");
  return m;
}

}  // namespace

Launches prepare_chain(const LaunchContext& context, const ChainKernelSource& kernel,
                       const Kernel& chain) {
  const auto& first = std::get<GemmMainloop>(chain.phases.at(0).mainloop);
  const auto& second = std::get<GemmMainloop>(chain.phases.at(1).mainloop);
  const auto shared = static_cast<unsigned>(narrow(kernel.shared_bytes));
  Function function = context.store.load(kernel.source).function(kernel.function, shared);
  const DeviceInfo& gpu = context.device.info();
  const std::int64_t at_once =
      context.device.blocks_at_once(function, narrow(chain_threads), shared) *
      static_cast<std::int64_t>(gpu.multiprocessors);
  if (kernel.layout.blocks > at_once)
    throw MissingError(
        fmt::format("kernel {} has {} thread blocks that wait for each other: {} runs {} at once",
                    kernel.function, kernel.layout.blocks, gpu.name, at_once));

  std::vector<DeviceBuffer> workspaces;
  workspaces.push_back(context.device.allocate(
      checked_product<Bytes>(kernel.layout.blocks, second.M, second.N, std::int64_t{4})));
  // The kernel leaves the counter as the next launch needs it.
  workspaces.push_back(context.device.allocate(Bytes(16)));
  workspaces.back().fill(0);

  const ChainArguments layout = chain_arguments(kernel);
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.whole.whole.size));
  const GpuMatrix a = chain_operand(context.tensors, first.a);
  const GpuMatrix b = chain_operand(context.tensors, first.b);
  const GpuMatrix c = chain_operand(context.tensors, second.b);
  const std::uint64_t pointers[5] = {a.address, b.address, c.address, workspaces[0].address(),
                                     workspaces[1].address()};
  const std::int32_t numbers[8] = {
      narrow(first.M), narrow(first.K), narrow(second.K), narrow(second.N),
      leading(a),      leading(b),      leading(c),       narrow(kernel.layout.columns)};
  put(bytes, layout.whole.offsets[0], pointers);
  put(bytes, layout.whole.offsets[1], numbers);
  put_chain_epilogue(bytes, layout.whole.offsets[2], layout.first, kernel.first, context.tensors);
  put_chain_epilogue(bytes, layout.whole.offsets[3], layout.second, kernel.second, context.tensors);

  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(kernel.layout.blocks);
  shape.block[0] = static_cast<unsigned>(chain_threads);
  shape.shared_bytes = shared;
  return one_launch(std::move(function), shape, {std::move(bytes)}, std::move(workspaces));
}

}  // namespace fuseline::cuda

#endif
