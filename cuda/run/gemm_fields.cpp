#if FUSELINE_HAS_CUDA

#include "cuda/run/gemm_fields.h"

#include <algorithm>

#include "cuda/run/batched_matrix.h"
#include "cuda/run/field_parameters.h"
#include "cuda/run/parameters.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kSlabCols = 64;

class Fields {
 public:
  Fields(std::vector<std::byte>& bytes, const LaunchContext& context,
         const GemmKernelSource& kernel, const GemmMainloop& gemm)
      : bytes_(bytes), context_(context), kernel_(kernel), config_(kernel.config), gemm_(gemm) {}

  void put_field(std::int64_t at, const Field& field) {
    if (field.kind == FieldKind::tile_out) return put_result(at, field);
    if (field.kind == FieldKind::tile_out_runs) return put_runs_of_result(at, field);
    if (field.kind == FieldKind::groups_out) return put_groups(at, field.operand);
    const GpuMatrix m = context_.tensors.matrix(field.operand);
    const auto begin = static_cast<std::int32_t>(field.begin);
    switch (field.kind) {
      case FieldKind::tile_in:
        put(bytes_, at,
            MappedParameter{map(m, static_cast<int>(config_.tile_m), kSlabCols, 128), m.address,
                            leading(m), begin});
        return;
      case FieldKind::cols_in: {
        GpuMatrix vector = m;
        vector.rows = 0;
        put(bytes_, at,
            MappedParameter{map(vector, 0, kSlabCols, 0), m.address,
                            static_cast<std::int32_t>(m.cols), begin});
        return;
      }
      case FieldKind::tile_out:
      case FieldKind::tile_out_runs:
      case FieldKind::groups_out:
        return;
      case FieldKind::rows_in:
      case FieldKind::rows_out:
      case FieldKind::partials:
      case FieldKind::table_in:
      case FieldKind::sequence_in:
        put_numbers(bytes_, at, field, m);
        return;
    }
  }

 private:
  // Ampere has no copy engine: its kernels do not look at maps.
  [[nodiscard]] TensorMap map(const GpuMatrix& m, int box_rows, int box_cols, int swizzle) const {
    return uses_maps(config_) ? map_of(context_.device, m, box_rows, box_cols, swizzle)
                              : TensorMap{};
  }

  // Few numbers, which threads store one by one: rows may lie in runs.
  void put_groups(std::int64_t at, const Operand& operand) {
    if (operand.at.run > 1) {
      GpuMatrix m = context_.tensors.all_rows(operand);
      m.address += static_cast<std::uint64_t>(operand.at.begin * m.row_bytes);
      put(bytes_, at,
          GroupsParameter{m.address, leading(m), static_cast<std::int32_t>(operand.at.run),
                          static_cast<std::int32_t>(operand.at.step)});
    } else {
      const GpuMatrix m = context_.tensors.matrix(operand);
      put(bytes_, at,
          GroupsParameter{m.address, leading(m), static_cast<std::int32_t>(operand.rows), 0});
    }
  }

  // Columns of a stored box: the value's in a slab, 128 bytes at most.
  struct StoredBox {
    int cols, bytes;
  };
  [[nodiscard]] StoredBox stored_box(const Field& field) const {
    const Dtype type = context_.plan.graph.tensor(field.operand.tensor).dtype;
    const auto size = static_cast<int>(1 * size_of(type));
    const int cols = std::min(4 * field.each * kernel_.slab_groups, 128 / size);
    return {cols, cols * size};
  }

  // Each run of rows is a matrix of its own below the others.
  void put_runs_of_result(std::int64_t at, const Field& field) {
    const RowRuns& rows = field.operand.at;
    const BatchedMatrix runs = batched_matrix(
        context_, field.operand, field.operand.rows / rows.run, rows.run, field.operand.cols);
    const auto [box_cols, box_bytes] = stored_box(field);
    MappedRuns parameter{};
    if (uses_maps(config_) && rows.run % stored_box_rows == 0)
      parameter.tile.map = map_of(context_.device, runs, stored_box_rows, box_cols, box_bytes);
    parameter.tile.data = runs.matrix.address;
    parameter.tile.ld_or_count = leading(runs.matrix);
    parameter.tile.begin_or_cols = static_cast<std::int32_t>(field.operand.cols);
    parameter.run = static_cast<std::int32_t>(rows.run);
    parameter.step = static_cast<std::int32_t>(rows.step);
    put(bytes_, at, parameter);
  }

  // Boxes of a warp's rows, swizzled by their size.
  void put_result(std::int64_t at, const Field& field) {
    const auto [box_cols, box_bytes] = stored_box(field);
    MappedParameter parameter{};
    GpuMatrix m;
    if (config_.batched) {
      const BatchedMatrix many =
          batched_matrix(context_, field.operand, gemm_.batch / gemm_.summed, gemm_.M, gemm_.N);
      m = many.matrix;
      parameter.place = many.place;
      if (uses_maps(config_))
        parameter.map = map_of(context_.device, many, stored_box_rows, box_cols, box_bytes);
    } else {
      m = context_.tensors.matrix(field.operand);
      parameter.map = map(m, stored_box_rows, box_cols, box_bytes);
    }
    parameter.data = m.address;
    parameter.ld_or_count = leading(m);
    parameter.begin_or_cols = static_cast<std::int32_t>(m.cols);
    put(bytes_, at, parameter);
  }

  std::vector<std::byte>& bytes_;
  const LaunchContext& context_;
  const GemmKernelSource& kernel_;
  const GemmConfig& config_;
  const GemmMainloop& gemm_;
};

}  // namespace

bool uses_maps(const GemmConfig& config) {
  return config.architecture == SmTarget::sm_90a && !config.codes;
}

void put_fields(std::vector<std::byte>& bytes, std::int64_t at, const StructLayout& layout,
                const LaunchContext& context, const GemmKernelSource& kernel,
                const GemmMainloop& gemm) {
  Fields fields(bytes, context, kernel, gemm);
  for (std::size_t i = 0; i < kernel.fields.size(); ++i)
    fields.put_field(at + layout.offsets[i], kernel.fields[i]);
}

}  // namespace fuseline::cuda

#endif
