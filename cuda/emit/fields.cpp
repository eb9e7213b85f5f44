#include "cuda/emit/fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

const char* element_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp16:
      return "fp16";
    case Dtype::fp32:
      return "float";
    case Dtype::e4m3:
      return "e4m3";
    case Dtype::int8:
      return "int8";
    default:  // not_built() refuses what has them
      break;
  }
  FUSELINE_ASSERT(false, "unknown element type");
}

std::string type_of(const Graph& graph, const Field& field) {
  const char* element = element_name(graph.tensor(field.operand.tensor).dtype);
  switch (field.kind) {
    case FieldKind::tile_in:
      return fmt::format("TileIn<{}, {}, {}>", element, field.slot, field.each);
    case FieldKind::cols_in:
      return fmt::format("ColsIn<{}, {}>", element, field.slot);
    case FieldKind::tile_out:
      return fmt::format("TileOut<{}>", element);
    case FieldKind::tile_out_runs:
      return fmt::format("TileOutRuns<{}, {}>", element,
                         field.operand.at.run % stored_box_rows == 0);
    case FieldKind::rows_in:
      return fmt::format("RowsIn<{}>", element);
    case FieldKind::rows_out:
      return fmt::format("RowsOut<{}>", element);
    case FieldKind::groups_out:
      return fmt::format("GroupsOut<{}>", element);
    case FieldKind::table_in:
      return fmt::format("TableIn<{}>", element);
    case FieldKind::sequence_in:
      return fmt::format("SequenceIn<{}, {}>", element, field.operand.col_begin % 2 == 0);
    case FieldKind::partials:
      return "Partials";
  }
  FUSELINE_ASSERT(false, "unknown field");
}

Layout layout_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::tile_in:
    case FieldKind::cols_in:
    case FieldKind::tile_out:
      return {192, 64};  // tensor map, pointer, two ints
    case FieldKind::tile_out_runs:
      return {256, 64};  // the same, and two ints
    case FieldKind::groups_out:
      return {24, 8};  // pointer, three ints
    case FieldKind::rows_in:
    case FieldKind::rows_out:
    case FieldKind::table_in:
    case FieldKind::sequence_in:
    case FieldKind::partials:
      return {16, 8};  // pointer, one or two ints
  }
  FUSELINE_ASSERT(false, "unknown field");
}

StructLayout lay_out(const std::vector<Layout>& parts) {
  StructLayout result;
  std::int64_t at = 0;
  for (const Layout& part : parts) {
    at = (at + part.alignment - 1) / part.alignment * part.alignment;
    result.offsets.push_back(at);
    at += part.size;
    result.whole.alignment = std::max(result.whole.alignment, part.alignment);
  }
  const std::int64_t a = result.whole.alignment;
  result.whole.size = std::max<std::int64_t>((at + a - 1) / a * a, parts.empty() ? 1 : 0);
  return result;
}

}  // namespace fuseline::cuda
