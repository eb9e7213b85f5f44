#if FUSELINE_HAS_CUDA

#include "cuda/run/gemm_launch.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cuda/run/batched_matrix.h"
#include "cuda/run/columns_launch.h"
#include "cuda/run/gemm_fields.h"
#include "cuda/run/kernel_function.h"
#include "cuda/run/parameters.h"
#include "cuda/run/row_groups.h"
#include "cuda/run/rows_apart.h"
#include "sim/kernels/gemm_raster.h"
#include "sim/kernels/gemm_schedule.h"

namespace fuseline::cuda {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr int kUsualGroup = static_cast<int>(kOwnRasterClusters);

// TailSums of kernels/sm90/tail_sums.cuh.
struct TailParameter {
  std::uint64_t sums, ready;
  std::int32_t parts, unused = 0;
};

// Thread blocks, or clusters that share the panel, that read a row of an operand one after another.
std::int64_t readers_of_a(const GemmConfig& c, const GemmMainloop& gemm) {
  return ceil_div(gemm.N, c.tile_n * (c.turned ? c.cluster : 1));
}
std::int64_t readers_of_b(const GemmConfig& c, const GemmMainloop& gemm) {
  return ceil_div(gemm.M, c.tile_m * (c.turned ? 1 : c.cluster));
}

// Bytes that L2 fetches at once for boxes of a matrix. 256 are best of what comes from memory.
// Where rows do not begin at lines, a box's 128 bytes lie in two lines, and fetching 256 costs L2
// more than it saves once the rows are there: products of 128 rows and more in eight odd sizes took
// 3 to 10 % less time with 128, those of 88 rows, whose weights are read once, 2 to 7 % more (one
// H100, docs/measuring.md).
int bytes_at_once(const GpuMatrix& m, std::int64_t readers, const GemmVariant& variant) {
  constexpr std::int64_t kLine = 128, kFewReaders = 1;
  if (variant.l2_promotion) return *variant.l2_promotion;
  return m.row_bytes % kLine != 0 && readers > kFewReaders ? 128 : 256;
}

// Of groups of rows, the most that there can be.
std::int64_t tiles_below(const GemmConfig& c, const GemmMainloop& gemm) {
  if (c.ragged)
    return gpu::most_row_tiles(static_cast<int>(gemm.M), static_cast<int>(gemm.groups.size()),
                               static_cast<int>(c.tile_m));
  const int blocks = c.turned ? 1 : c.cluster;
  return ceil_div(gemm.M, c.tile_m * blocks) * blocks;
}
std::int64_t tiles_beside(const GemmConfig& c, const GemmMainloop& gemm) {
  const int blocks = c.turned ? c.cluster : 1;
  return ceil_div(gemm.N, c.tile_n * blocks) * blocks;
}

// CodeScales of kernels/sm90/config.cuh.
struct ScalesParameter {
  std::uint64_t a = 0, b = 0, tensor = 0;
  std::int32_t a_ld = 0, b_ld = 0, b_rows = 0, unused = 0;
};

// What the kernel needs besides its code.
class Arguments {
 public:
  // `blocks`: thread blocks of the launch.
  Arguments(const LaunchContext& context, const GemmKernelSource& kernel, const Program& program,
            unsigned blocks)
      : context_(context),
        kernel_(kernel),
        config_(kernel.config),
        gemm_(std::get<GemmMainloop>(program.mainloop)),
        results_(gemm_.batch / gemm_.summed),
        blocks_(blocks),
        layout_(gemm_arguments(kernel)),
        bytes_(static_cast<std::size_t>(layout_.whole.whole.size)) {}

  std::vector<std::byte> fill() {
    if (config_.codes) return fill_codes();
    const std::vector<std::int64_t>& at = layout_.whole.offsets;
    const auto M = static_cast<std::int32_t>(gemm_.M);
    const auto N = static_cast<std::int32_t>(gemm_.N);
    const auto K = static_cast<std::int32_t>(gemm_.K);
    gpu::Batch batch{static_cast<int>(results_), static_cast<int>(gemm_.summed), {}, {}};
    const auto [lda, ldb] = put_operands(batch);
    if (hopper()) {
      const std::int32_t numbers[4] = {M, N, K, raster_group()};
      put(bytes_, at[2], numbers);
    } else {
      const std::int32_t numbers[6] = {M, N, K, lda, ldb, kUsualGroup};
      put(bytes_, at[2], numbers);
    }
    put_fields(bytes_, at[3], layout_.epilogue, context_, kernel_, gemm_);
    put(bytes_, at[4], batch);
    if (config_.a_apart) put(bytes_, at[5], static_cast<std::int32_t>(gemm_.a.at.run));
    if (hopper() && config_.tail_parts > 1) put(bytes_, at[7], tail_sums());
    if (config_.of_codes) put(bytes_, at[8], scales());
    if (config_.ragged || config_.ragged_k)
      put(bytes_, at[hopper() ? 6 : 5],
          row_groups(context_.device, config_.ragged ? gemm_.groups : gemm_.depths, workspaces_));
    return std::move(bytes_);
  }

  // What must come before the kernel.
  Launches copies() { return std::move(copies_); }
  // What the parameters point to beside the plan's tensors.
  std::vector<DeviceBuffer> workspaces() { return std::move(workspaces_); }

 private:
  // The group that the simulator takes (sim/kernels/gemm_raster.h).
  std::int32_t raster_group() const {
    if (gemm_.batch > 1 || config_.ragged || config_.ragged_k || config_.cluster_k > 1)
      return kUsualGroup;
    const Bytes row(gemm_.K * (config_.of_codes ? 1 : 2));
    const RasterTiles tiles =
        raster_tiles(tile_of(config_), gemm_.M, gemm_.N, row, row, blocks_ / config_.cluster);
    return static_cast<std::int32_t>(fastest_group(tiles, context_.device.info().l2));
  }

  // TailSums of kernels/sm90/tail_sums.cuh, with the workspace that it points to.
  TailParameter tail_sums() {
    const std::int64_t clusters =
        tiles_below(config_, gemm_) * tiles_beside(config_, gemm_) / config_.cluster;
    const std::int64_t rest = clusters % (context_.device.info().multiprocessors / config_.cluster);
    const std::int64_t places =
        std::max<std::int64_t>(1, rest * config_.tail_parts) * config_.cluster;
    workspaces_.push_back(
        context_.device.allocate(Bytes(places * config_.tile_m * config_.tile_n * 4)));
    // A number for each 64 rows of the tensor cores' tile, which are a turned tile's columns.
    const std::int64_t along = config_.turned ? config_.tile_n : config_.tile_m;
    DeviceBuffer ready = context_.device.allocate(Bytes(places * along / 64 * 4));
    ready.fill(0);
    const TailParameter parameter{workspaces_.back().address(), ready.address(),
                                  config_.tail_parts};
    workspaces_.push_back(std::move(ready));
    return parameter;
  }

  [[nodiscard]] ScalesParameter scales() const {
    ScalesParameter s;
    const std::vector<ScaleTensor> beside = gemm_.weight.beside(gemm_.N, gemm_.K);
    for (std::size_t i = 0; i < beside.size(); ++i) {
      const GpuMatrix m = context_.tensors.matrix(gemm_.beside_b.at(i));
      if (beside[i].kind == ScaleKind::tensor_scale) {
        s.tensor = m.address;
      } else {
        s.b = m.address;
        s.b_ld = leading(m);
        s.b_rows = static_cast<std::int32_t>(beside[i].rows);
      }
    }
    const GpuMatrix of_a = context_.tensors.matrix(*gemm_.a_scale);
    s.a = of_a.address;
    s.a_ld = leading(of_a);
    return s;
  }

  // Both operands; returns their leading dimensions. If turned, B is the mainloop's first and the
  // blocks of a cluster share A.
  std::pair<std::int32_t, std::int32_t> put_operands(gpu::Batch& batch) {
    const std::int64_t first = layout_.whole.offsets[0], second = layout_.whole.offsets[1];
    const int shared_rows =
        static_cast<int>(config_.turned ? config_.tile_m : config_.tile_n) / config_.cluster;
    const std::int64_t of_a = readers_of_a(config_, gemm_), of_b = readers_of_b(config_, gemm_);
    if (config_.turned) {
      const std::int32_t ldb =
          put_operand(first, gemm_.b, gemm_.N, gemm_.b_is_kn,
                      gemm_.b_is_kn ? 64 : static_cast<int>(config_.tile_n), of_b, batch.b);
      return {put_operand(second, gemm_.a, gemm_.M, false, shared_rows, of_a, batch.a), ldb};
    }
    const std::int32_t lda =
        config_.a_apart
            ? put_runs(first, gemm_.a)
            : put_operand(first, gemm_.a, gemm_.M, gemm_.a_is_km,
                          gemm_.a_is_km ? 64 : static_cast<int>(config_.a_rows), of_a, batch.a);
    return {lda, put_operand(second, gemm_.b, gemm_.N, gemm_.b_is_kn,
                             gemm_.b_is_kn ? 64 / config_.cluster : shared_rows, of_b, batch.b)};
  }

  // CodesArgs of kernels/gemm_codes.cuh.
  std::vector<std::byte> fill_codes() {
    const std::vector<std::int64_t>& at = layout_.whole.offsets;
    const GpuMatrix a = context_.tensors.matrix(gemm_.a), b = context_.tensors.matrix(gemm_.b);
    FUSELINE_ASSERT(a.address % 16 == 0 && b.address % 16 == 0 && b.row_bytes % 16 == 0,
                    "rows start at multiples of 16 bytes");
    std::uint64_t pointers[6] = {a.address, b.address, 0, 0, 0, 0};
    std::int32_t numbers[10] = {static_cast<std::int32_t>(gemm_.M),
                                static_cast<std::int32_t>(gemm_.N),
                                static_cast<std::int32_t>(gemm_.K),
                                static_cast<std::int32_t>(a.row_bytes),
                                static_cast<std::int32_t>(b.row_bytes),
                                0,
                                0,
                                0,
                                0,
                                kUsualGroup};
    const std::vector<ScaleTensor> beside = gemm_.weight.beside(gemm_.N, gemm_.K);
    for (std::size_t i = 0; i < beside.size(); ++i) {
      const GpuMatrix m = context_.tensors.matrix(gemm_.beside_b.at(i));
      switch (beside[i].kind) {
        case ScaleKind::scale:
          pointers[2] = m.address;
          numbers[5] = leading(m);
          numbers[8] = static_cast<std::int32_t>(beside[i].rows);
          break;
        case ScaleKind::zero_point:
          pointers[3] = m.address;
          numbers[6] = leading(m);
          break;
        case ScaleKind::tensor_scale:
          pointers[4] = m.address;
          break;
      }
    }
    if (gemm_.a_scale) {
      const GpuMatrix m = context_.tensors.matrix(*gemm_.a_scale);
      pointers[5] = m.address;
      numbers[7] = leading(m);
    }
    put(bytes_, at[0], pointers);
    put(bytes_, at[1], numbers);
    put_fields(bytes_, at[2], layout_.epilogue, context_, kernel_, gemm_);
    if (config_.ragged) put(bytes_, at[3], row_groups(context_.device, gemm_.groups, workspaces_));
    return std::move(bytes_);
  }

  [[nodiscard]] bool hopper() const { return uses_maps(config_); }
  // Returns the leading dimension. `readers`: of each row.
  std::int32_t put_operand(std::int64_t at, const Operand& operand, std::int64_t rows,
                           bool transposed, int box_rows, std::int64_t readers,
                           gpu::BatchPlace& place) {
    GpuMatrix m;
    std::optional<TensorMap> described;
    // Matrices of groups end where their rows of K do.
    const bool of_groups = config_.ragged && transposed;
    if (of_groups || (config_.batched && !config_.ragged_k)) {
      const BatchedMatrix many =
          batched_matrix(context_, operand, of_groups ? operand.rows / gemm_.K : gemm_.batch,
                         transposed ? gemm_.K : rows, transposed ? rows : gemm_.K);
      place = many.place;
      m = many.matrix;
      if (hopper()) described = map_of(context_.device, many, box_rows, 64, 128);
    } else {
      m = loaded(operand);
      const GemmVariant& v = config_.variant;
      if (hopper())
        described = map_of(context_.device, m, box_rows,
                           config_.of_codes ? 128
                           : v.half_boxes   ? 32
                                            : 64,
                           v.half_boxes ? 64 : 128, bytes_at_once(m, readers, v));
    }
    if (described) {
      put(bytes_, at, *described);
    } else {
      FUSELINE_ASSERT(m.address % 16 == 0, "rows start at multiples of 16 bytes");
      put(bytes_, at, m.address);
    }
    return leading(m);
  }

  // Each run of rows is a matrix of its own below the others.
  std::int32_t put_runs(std::int64_t at, const Operand& operand) {
    const std::int64_t run = operand.at.run;
    const BatchedMatrix runs =
        batched_matrix(context_, operand, operand.rows / run, run, operand.cols);
    put(bytes_, at, map_of(context_.device, runs, static_cast<int>(config_.tile_m), 64, 128));
    return leading(runs.matrix);
  }

  GpuMatrix loaded(const Operand& operand) {
    if (!lies_apart(operand)) return context_.tensors.matrix(operand);
    RowsApart apart = gathered_rows(context_, operand);
    copies_.push_back(std::move(apart.copy));
    return apart.workspace;
  }

  const LaunchContext& context_;
  const GemmKernelSource& kernel_;
  const GemmConfig& config_;
  const GemmMainloop& gemm_;
  std::int64_t results_;  // of the batch
  std::int64_t blocks_;
  GemmArguments layout_;
  std::vector<std::byte> bytes_;
  Launches copies_;
  std::vector<DeviceBuffer> workspaces_;
};

// Hopper's thread blocks stay for all tiles, but for clusters along K, which make one each, as
// Ampere's blocks do.
LaunchShape shape_of(const GemmConfig& c, const GemmMainloop& gemm, int multiprocessors) {
  const std::int64_t tiles =
      tiles_below(c, gemm) * tiles_beside(c, gemm) * (gemm.batch / gemm.summed);
  LaunchShape shape;
  if (c.codes) {
    shape.grid[0] = static_cast<unsigned>(tiles * c.cluster_k);
    shape.block[0] = 256;
  } else if (c.architecture == SmTarget::sm_90a) {
    const std::int64_t most = multiprocessors / c.cluster * c.cluster;
    shape.grid[0] = static_cast<unsigned>(c.cluster_k > 1    ? tiles * c.cluster_k
                                          : c.tail_parts > 1 ? most
                                                             : std::min(tiles, most));
    shape.block[0] = 384;
    // Clusters that come while others end find no room for some of theirs, which are a round of
    // their own then: LLaMA-2-13B in decode took 224 us on an H200 in place of 206.
    shape.in_order = c.cluster * c.cluster_k > 1;
  } else {
    shape.grid[0] = static_cast<unsigned>(tiles);
    shape.block[0] = static_cast<unsigned>(c.tile_n);  // a warp for 32 rows × 128 columns
  }
  return shape;
}

}  // namespace

Launches prepare_gemm(const LaunchContext& context, const GemmKernelSource& kernel,
                      const Program& program) {
  if (kernel.config.columns) return prepare_columns(context, kernel, program);
  KernelFunction code = load_function(context, kernel.source, kernel.function);
  LaunchShape shape = shape_of(kernel.config, std::get<GemmMainloop>(program.mainloop),
                               context.device.info().multiprocessors);
  shape.shared_bytes = code.shared_bytes;
  // Clusters of two fill the GPU. Of larger ones fewer run at once, and one that comes later would
  // have its share of the tiles after all others.
  if (const int cluster = kernel.config.cluster; cluster > 2)
    shape.grid[0] = std::min(shape.grid[0],
                             static_cast<unsigned>(cluster * context.device.clusters_at_once(
                                                                 code.function, shape, cluster)));
  Arguments arguments(context, kernel, program, shape.grid[0]);
  KernelParameters parameters{arguments.fill()};
  Launches launches = arguments.copies();
  add_launch(launches, std::move(code.function), shape, std::move(parameters),
             arguments.workspaces());
  return launches;
}

}  // namespace fuseline::cuda

#endif
