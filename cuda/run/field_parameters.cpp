#if FUSELINE_HAS_CUDA

#include "cuda/run/field_parameters.h"

#include "base/error.h"
#include "cuda/run/parameters.h"

namespace fuseline::cuda {

void put_numbers(std::vector<std::byte>& bytes, std::int64_t at, const Field& field,
                 const GpuMatrix& m) {
  switch (field.kind) {
    case FieldKind::rows_in:
    case FieldKind::rows_out:
    case FieldKind::partials:
      put(bytes, at, RowsParameter{m.address, leading(m)});
      return;
    case FieldKind::table_in:
      put(bytes, at, TableParameter{m.address, static_cast<std::int32_t>(m.rows), leading(m)});
      return;
    case FieldKind::sequence_in:
      put(bytes, at,
          SequenceParameter{m.address, leading(m), static_cast<std::int32_t>(field.tokens)});
      return;
    case FieldKind::tile_in:
    case FieldKind::cols_in:
    case FieldKind::tile_out:
    case FieldKind::tile_out_runs:
    case FieldKind::groups_out:
      break;
  }
  FUSELINE_ASSERT(false, "a field with a map");
}

}  // namespace fuseline::cuda

#endif
