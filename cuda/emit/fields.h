// The parameters that a generated kernel takes besides its mainloop's, and how they lie in memory:
// one description gives the source its struct and the host its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.h"

namespace fuseline::cuda {

// Types of cuda/kernels, by the primitive that uses them.
enum class FieldKind : std::uint8_t {
  tile_in,        // TileIn<element, slot, each>: a tile that the copy engine brings
  cols_in,        // ColsIn<element, slot>
  tile_out,       // TileOut<element>
  tile_out_runs,  // TileOutRuns<element, whole>: rows that lie apart
  rows_in,        // RowsIn<element>
  rows_out,       // RowsOut<element>
  groups_out,     // GroupsOut<element>: one number for every group of columns
  table_in,       // TableIn<element>
  sequence_in,    // SequenceIn<element, pairs>
  partials,       // Partials
};

struct Field {
  FieldKind kind = FieldKind::tile_in;
  std::string name;
  Operand operand;
  int slot = 0;            // tile_in, cols_in: place among the loads of a slab
  int each = 2;            // tiles: columns of a thread in a group (fragment.cuh)
  std::int64_t begin = 0;  // tile_in, cols_in: the accumulator column of the operand's first column
  std::int64_t tokens = 0;  // sequence_in: rows of a sequence
};

// "TileIn<bf16, 0, 2>"
std::string type_of(const Graph& graph, const Field& field);

// Rows of a box that is stored: a run of a multiple of them is whole boxes.
constexpr std::int64_t stored_box_rows = 16;

// Bytes and alignment of a field's type, as the device's compiler lays it out.
struct Layout {
  std::int64_t size = 0, alignment = 1;
};
Layout layout_of(FieldKind kind);

// Where each of `parts` lies in a struct of them in order, and the size of the whole.
struct StructLayout {
  std::vector<std::int64_t> offsets;
  Layout whole;
};
StructLayout lay_out(const std::vector<Layout>& parts);

// "bf16", "fp16", "float"
const char* element_name(Dtype dtype);

}  // namespace fuseline::cuda
