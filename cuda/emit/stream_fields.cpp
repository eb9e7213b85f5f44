#include "cuda/emit/stream_fields.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/row_pitch.h"
#include "cuda/emit/widths.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kVectorBytes = 16;

}  // namespace

std::string type_of(const Graph& graph, const StreamField& field) {
  const auto of = [&](const char* type) {
    const char* element = element_name(graph.tensor(field.operand.tensor).dtype);
    return fmt::format("{}<{}{}>", type, element, field.aligned ? "" : ", false");
  };
  switch (field.kind) {
    case StreamFieldKind::tile:
    case StreamFieldKind::gathered:
      return of("Tile");
    case StreamFieldKind::rows:
      return of("Rows");
    case StreamFieldKind::cols:
      return of("Cols");
    case StreamFieldKind::table:
      return of("Table");
    case StreamFieldKind::partials:
      return "Partials";
    case StreamFieldKind::visible:
      return "Visible";
    case StreamFieldKind::constant:
      return "float";
    case StreamFieldKind::count:
      return "int";
    case StreamFieldKind::row_groups:
      return "RowGroups";
  }
  FUSELINE_ASSERT(false, "unknown field");
}

Layout layout_of(StreamFieldKind kind) {
  switch (kind) {
    case StreamFieldKind::tile:
    case StreamFieldKind::gathered:
      return {32, 8};  // pointer, row distance, four ints
    case StreamFieldKind::table:
      return {24, 8};  // pointer, three ints
    case StreamFieldKind::rows:
      return {16, 8};  // pointer, distance
    case StreamFieldKind::partials:
    case StreamFieldKind::row_groups:
      return {16, 8};  // pointer, int
    case StreamFieldKind::cols:
      return {8, 8};
    case StreamFieldKind::visible:
      return {16, 4};  // four ints
    case StreamFieldKind::constant:
    case StreamFieldKind::count:
      return {4, 4};
  }
  FUSELINE_ASSERT(false, "unknown field");
}

bool moves_vectors(const Graph& graph, const Operand& operand) {
  const Tensor& t = graph.tensor(operand.tensor);
  const bool begins = operand.col_begin * size_of(t.dtype) % kVectorBytes == 0;
  const bool ends = operand.cols % kVectorCols == 0 || operand.col_begin + operand.cols == t.cols;
  const bool lies = operand.rows == 1 || row_pitch(t) % kVectorBytes == 0;
  return begins && ends && lies;
}

}  // namespace fuseline::cuda
