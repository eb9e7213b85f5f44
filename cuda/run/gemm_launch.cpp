#if FUSELINE_HAS_CUDA

#include "cuda/run/gemm_launch.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "model/error.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kSlabCols = 64;
constexpr int kRasterGroup = 8;  // cluster rows of tiles that are swept together

template <class T>
void put(std::vector<std::byte>& bytes, std::int64_t at, const T& value) {
  FUSELINE_ASSERT(
      at + static_cast<std::int64_t>(sizeof value) <= static_cast<std::int64_t>(bytes.size()),
      "parameters fit their struct");
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TensorType tensor_type(Dtype type) {
  switch (type) {
    case Dtype::bf16:
      return TensorType::bf16;
    case Dtype::fp16:
      return TensorType::fp16;
    case Dtype::fp32:
      return TensorType::fp32;
  }
  FUSELINE_ASSERT(false, "unknown element type");
}

TensorMap map_of(const Device& device, const GpuMatrix& m, int box_rows, int box_cols,
                 int swizzle) {
  FUSELINE_ASSERT(m.address % 16 == 0 && m.row_bytes % 16 == 0,
                  "the copy engine moves rows that start at multiples of 16 bytes");
  return device.tensor_map({.type = tensor_type(m.type),
                            .address = m.address,
                            .rows = m.rows,
                            .cols = m.cols,
                            .row_bytes = m.row_bytes,
                            .box_rows = box_rows,
                            .box_cols = box_cols,
                            .swizzle = swizzle});
}

// As the device's structs lay them out (epilogue/operands.cuh, vector.cuh, reduce.cuh).
struct MappedParameter {
  TensorMap map;
  std::uint64_t data;
  std::int32_t ld_or_count, begin_or_cols;
};
struct RowsParameter {
  std::uint64_t data;
  std::int32_t ld;
};
struct TableParameter {
  std::uint64_t data;
  std::int32_t period, cols;
};

std::int32_t leading(const GpuMatrix& m) {
  return static_cast<std::int32_t>(m.row_bytes / size_of(m.type));
}

void put_field(const Device& device, std::vector<std::byte>& bytes, std::int64_t at,
               const Field& field, const GpuMatrix& m, int tile_rows, int slab_groups) {
  const auto begin = static_cast<std::int32_t>(field.begin);
  const auto cols = static_cast<std::int32_t>(m.cols);
  switch (field.kind) {
    case FieldKind::tile_in:
      put(bytes, at,
          MappedParameter{map_of(device, m, tile_rows, kSlabCols, 128), m.address, leading(m),
                          begin});
      return;
    case FieldKind::cols_in: {
      GpuMatrix vector = m;
      vector.rows = 0;
      put(bytes, at,
          MappedParameter{map_of(device, vector, 0, kSlabCols, 0), m.address, cols, begin});
      return;
    }
    case FieldKind::tile_out: {
      // 64 rows of the value's columns in a slab, 128 bytes at most, swizzled by their size.
      const auto size = static_cast<int>(size_of(m.type));
      const int box_cols = std::min(4 * field.each * slab_groups, 128 / size);
      const TensorMap map = map_of(device, m, 64, box_cols, box_cols * size);
      put(bytes, at, MappedParameter{map, m.address, leading(m), cols});
      return;
    }
    case FieldKind::rows_in:
    case FieldKind::rows_out:
    case FieldKind::partials:
      put(bytes, at, RowsParameter{m.address, leading(m)});
      return;
    case FieldKind::table_in:
      put(bytes, at, TableParameter{m.address, static_cast<std::int32_t>(m.rows), leading(m)});
      return;
  }
}

int shared_bytes_of(const Module& module, const std::string& function) {
  std::int32_t bytes = 0;
  module.read_constant(function + "_shared_bytes", std::as_writable_bytes(std::span(&bytes, 1)));
  return bytes;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

void PreparedLaunch::launch(Stream& stream) const {
  // The driver copies the parameter; its interface asks for a pointer to non-const.
  void* argument = const_cast<std::byte*>(arguments.data());
  stream.launch(function, shape, std::span(&argument, 1));
}

PreparedLaunch prepare_gemm(const Device& device, KernelStore& store,
                            const GemmKernelSource& kernel, const Program& program,
                            const GpuTensors& tensors, std::int64_t sequences) {
  const auto& gemm = std::get<GemmMainloop>(program.mainloop);
  FUSELINE_ASSERT(gemm.batch == 1, "products in batches have a launch of their own");
  const GemmConfig& c = kernel.config;

  std::vector<Layout> fields;
  for (const Field& f : kernel.fields) fields.push_back(layout_of(f.kind));
  const StructLayout epilogue = lay_out(fields);
  // struct { TmaMap a, b; int M, N, K, raster_group; Params epilogue; }
  const StructLayout whole = lay_out({{128, 64}, {128, 64}, {16, 4}, epilogue.whole});
  std::vector<std::byte> bytes(static_cast<std::size_t>(whole.whole.size));

  const int tile_m = static_cast<int>(c.tile_m);
  const int tile_n = static_cast<int>(c.tile_n);
  put(bytes, whole.offsets[0],
      map_of(device, tensors.matrix(gemm.a, sequences), gemm.a_is_km ? 64 : tile_m, 64, 128));
  put(bytes, whole.offsets[1],
      map_of(device, tensors.matrix(gemm.b, sequences), (gemm.b_is_kn ? 64 : tile_n) / c.cluster,
             64, 128));
  const std::int32_t numbers[4] = {static_cast<std::int32_t>(gemm.M),
                                   static_cast<std::int32_t>(gemm.N),
                                   static_cast<std::int32_t>(gemm.K), kRasterGroup};
  put(bytes, whole.offsets[2], numbers);
  for (std::size_t i = 0; i < kernel.fields.size(); ++i)
    put_field(device, bytes, whole.offsets[3] + epilogue.offsets[i], kernel.fields[i],
              tensors.matrix(kernel.fields[i].operand, sequences), tile_m, kernel.slab_groups);

  Module module = store.load(kernel.source);
  const auto shared = static_cast<unsigned>(shared_bytes_of(module, kernel.function));
  Function function = module.function(kernel.function, shared);
  const std::int64_t tiles =
      ceil_div(gemm.M, c.tile_m * c.cluster) * c.cluster * ceil_div(gemm.N, c.tile_n);
  const std::int64_t most = device.info().multiprocessors / c.cluster * c.cluster;
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(std::min(tiles, most));
  shape.block[0] = 384;
  shape.shared_bytes = shared;
  return {std::move(module), std::move(function), shape, std::move(bytes)};
}

}  // namespace fuseline::cuda

#endif
