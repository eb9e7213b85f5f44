// The parameters of a generated stream or row kernel, and how they lie in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/emit/fields.h"
#include "model/graph.h"
#include "model/operators/attributes.h"

namespace fuseline::cuda {

// Types of cuda/kernels/stream.
enum class StreamFieldKind : std::uint8_t {
  tile,        // Tile<element, aligned>
  rows,        // Rows<element>: also token numbers
  cols,        // Cols<element, aligned>
  table,       // Table<element, aligned>
  gathered,    // Tile: rows of the tensor itself, from its first
  partials,    // Partials
  visible,     // Visible
  constant,    // float
  count,       // int
  row_groups,  // RowGroups: where groups of rows end
};

struct StreamField {
  StreamFieldKind kind = StreamFieldKind::tile;
  std::string name{};
  Operand operand{};                    // of what lies in memory
  bool aligned = true;                  // tiles, cols and tables: moves 16 bytes at once
  double constant = 0;                  // constant
  std::int64_t count = 0;               // count
  AttentionShape attention{};           // visible
  std::vector<std::int64_t> lengths{};  // row_groups
};

// "Tile<bf16, true>"
std::string type_of(const Graph& graph, const StreamField& field);
Layout layout_of(StreamFieldKind kind);

// Whether 16 bytes at a time move: rows of tensors start at multiples of 16 bytes and are padded to
// them, so the operand must start at one and end at one, or where the tensor's rows end.
bool moves_vectors(const Graph& graph, const Operand& operand);

}  // namespace fuseline::cuda
