#if FUSELINE_HAS_CUDA

#include "cuda/run/stream_launch.h"

#include <array>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "cuda/kernels/stream/tile_space.cuh"
#include "cuda/run/parameters.h"
#include "cuda/run/stream_arguments.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kVectorCols = 8;
constexpr std::int64_t kWarp = 32;

struct Grid {
  std::int64_t blocks = 0;
  std::vector<std::byte> space;
};

// tile_space and tile_blocks of kernels/stream/mainloop.cuh.
Grid tile_grid(const StreamShape& s) {
  const bool pairs = s.distance > 0;
  const std::int64_t thread_cols = pairs ? s.cols / 2 : s.cols;
  const std::int64_t unit_rows = pairs ? s.units / 2 : s.units;
  const std::int64_t warps = s.block_threads / kWarp;
  const std::int64_t wanted = ceil_div(thread_cols, kVectorCols);
  const auto [lanes, across] =
      gpu::stream::side_by_side(narrow(wanted), narrow(warps), narrow(s.least_lanes));
  const std::int64_t down = warps / across * (kWarp / lanes) * unit_rows;
  return {ceil_div(wanted, lanes * across) * ceil_div(s.rows, down),
          bytes_of(std::array{narrow(s.rows), narrow(s.cols), lanes, across})};
}

Grid row_grid(const StreamShape& s) {
  const std::int64_t rows = s.inner_rows > 0         ? s.inner_rows
                            : s.row_threads <= kWarp ? s.block_threads / s.row_threads
                                                     : 1;
  return {ceil_div(s.rows, rows),
          bytes_of(std::array{narrow(s.rows), narrow(s.cols), narrow(s.heads), narrow(s.tokens)})};
}

Grid column_grid(const StreamShape& s) {
  return {ceil_div(s.cols, s.lanes * kVectorCols) * ceil_div(s.rows, s.block_rows),
          bytes_of(std::array{narrow(s.rows), narrow(s.cols), narrow(s.block_rows)})};
}

Grid grid_of(const StreamShape& s) {
  switch (s.loop) {
    case StreamLoop::tiles:
      return tile_grid(s);
    case StreamLoop::rows:
      return row_grid(s);
    case StreamLoop::columns_down:
      return column_grid(s);
  }
  FUSELINE_ASSERT(false, "unknown mainloop");
}

}  // namespace

Launches prepare_stream(const LaunchContext& context, const StreamKernelSource& kernel,
                        const Program& program) {
  const Grid grid = grid_of(kernel.shape);
  FUSELINE_ASSERT(grid.blocks <= INT32_MAX, program.name + ": too many thread blocks");
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(grid.blocks);
  shape.block[0] = static_cast<unsigned>(kernel.shape.block_threads);
  Function function = context.store.load(kernel.source).function(kernel.function, 0);
  KernelParameters parameters;
  std::vector<DeviceBuffer> workspaces;
  parameters.push_back(stream_arguments(context, kernel.fields, workspaces));
  parameters.push_back(grid.space);
  return one_launch(std::move(function), shape, std::move(parameters), std::move(workspaces));
}

}  // namespace fuseline::cuda

#endif
