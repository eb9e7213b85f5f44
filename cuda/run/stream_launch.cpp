#if FUSELINE_HAS_CUDA

#include "cuda/run/stream_launch.h"

#include <array>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "cuda/run/parameters.h"
#include "cuda/run/row_groups.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kVectorCols = 8;
constexpr std::int64_t kWarp = 32;

// As the device's structs lay them out (kernels/stream/memory.cuh, heads.cuh, mainloop.cuh).
struct TileParameter {
  std::uint64_t data;
  std::int64_t ld;
  std::int32_t rows, cols, period, jump;
};
struct RowsParameter {
  std::uint64_t data;
  std::int64_t step;
};
struct TableParameter {
  std::uint64_t data;
  std::int32_t period, cols, ld;
};
struct PartialsParameter {
  std::uint64_t data;
  std::int32_t ld;
};
struct VisibleParameter {
  std::int32_t tokens, first_end, step, window;
};

std::int32_t narrow(std::int64_t n) {
  FUSELINE_ASSERT(n >= 0 && n <= INT32_MAX, "a kernel counts with 32 bits");
  return static_cast<std::int32_t>(n);
}

class Parameters {
 public:
  explicit Parameters(const LaunchContext& context) : context_(context) {}

  // What the parameters point to beside the plan's tensors.
  std::vector<DeviceBuffer> workspaces() { return std::move(workspaces_); }

  std::vector<std::byte> of(const std::vector<StreamField>& fields) {
    std::vector<Layout> parts;
    for (const StreamField& f : fields) parts.push_back(layout_of(f.kind));
    const StructLayout layout = lay_out(parts);
    std::vector<std::byte> bytes(static_cast<std::size_t>(layout.whole.size));
    for (std::size_t i = 0; i < fields.size(); ++i) write(bytes, layout.offsets[i], fields[i]);
    return bytes;
  }

 private:
  [[nodiscard]] GpuMatrix all_rows(const Operand& operand) const {
    return context_.tensors.all_rows(operand);
  }

  [[nodiscard]] TileParameter tile(const Operand& operand) const {
    const GpuMatrix all = all_rows(operand);
    TileParameter t{all.address, leading(all), narrow(operand.rows), narrow(operand.cols), 0, 0};
    t.data += static_cast<std::uint64_t>(operand.at.begin * all.row_bytes);
    t.jump = narrow(operand.at.step);
    t.period = narrow(operand.at.run);
    return t;
  }

  void write(std::vector<std::byte>& bytes, std::int64_t at, const StreamField& f) {
    switch (f.kind) {
      case StreamFieldKind::tile:
        return put(bytes, at, tile(f.operand));
      case StreamFieldKind::gathered: {
        const GpuMatrix all = all_rows(f.operand);
        return put(
            bytes, at,
            TileParameter{all.address, leading(all), narrow(all.rows), narrow(all.cols), 0, 0});
      }
      case StreamFieldKind::rows: {
        const GpuMatrix m = context_.tensors.matrix(f.operand);
        // A column result that was found row by row lies side by side.
        return put(bytes, at,
                   RowsParameter{m.address, f.operand.rows == 1 ? 1 : std::int64_t{leading(m)}});
      }
      case StreamFieldKind::cols:
        return put(bytes, at, all_rows(f.operand).address);
      case StreamFieldKind::table: {
        const GpuMatrix all = context_.tensors.matrix(f.operand);
        return put(bytes, at,
                   TableParameter{all.address, narrow(f.operand.rows), narrow(f.operand.cols),
                                  leading(all)});
      }
      case StreamFieldKind::partials: {
        const GpuMatrix m = all_rows(f.operand);
        return put(bytes, at, PartialsParameter{m.address, leading(m)});
      }
      case StreamFieldKind::visible:
        return put(bytes, at, visible(f));
      case StreamFieldKind::constant:
        return put(bytes, at, static_cast<float>(f.constant));
      case StreamFieldKind::count:
        return put(bytes, at, narrow(f.count));
      case StreamFieldKind::row_groups:
        return put(bytes, at, row_groups(context_.device, f.lengths, workspaces_));
    }
    FUSELINE_ASSERT(false, "unknown field");
  }

  // Of f.count keys the last is the last query's own.
  static VisibleParameter visible(const StreamField& f) {
    const AttentionShape& a = f.attention;
    return {narrow(a.q_tokens), narrow(a.causal ? f.count - a.q_tokens + 1 : f.count),
            a.causal ? 1 : 0, narrow(a.window)};
  }

  const LaunchContext& context_;
  std::vector<DeviceBuffer> workspaces_;
};

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
  std::int64_t lanes = s.least_lanes;
  while (lanes < kWarp && lanes < wanted) lanes *= 2;
  std::int64_t across = 1;
  while (2 * across <= warps && across * lanes < wanted) across *= 2;
  const std::int64_t down = warps / across * (kWarp / lanes) * unit_rows;
  return {ceil_div(wanted, lanes * across) * ceil_div(s.rows, down),
          bytes_of(std::array{narrow(s.rows), narrow(s.cols), narrow(lanes), narrow(across)})};
}

Grid row_grid(const StreamShape& s) {
  const std::int64_t rows = s.row_threads <= kWarp ? s.block_threads / s.row_threads : 1;
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
  std::vector<std::vector<std::byte>> parameters;
  Parameters fields(context);
  parameters.push_back(fields.of(kernel.fields));
  parameters.push_back(grid.space);
  Launches launches;
  launches.push_back(std::make_unique<KernelLaunch>(std::move(function), shape,
                                                    std::move(parameters), fields.workspaces()));
  return launches;
}

}  // namespace fuseline::cuda

#endif
