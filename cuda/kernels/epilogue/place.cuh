// Where a slab lies in the result, and which of its elements exist.
#pragma once

#include "../fragment.cuh"

namespace fuseline::gpu {

// Column reductions that an epilogue may have (epilogue/reduce.cuh).
constexpr int most_column_reductions = 4;

struct SlabPlace {
  int row;   // first of the 16 rows of this warp
  int col;   // first of the slab's accumulator columns; counted from the start of a part (Columns)
  int rows;  // rows of the result
  int cols;  // accumulator columns of the result, or of the part
  int span;  // accumulator columns of the slab: 64 or 32
  int result = 0;  // of a batch

  // Columns of a value with `each` columns a thread and group: a pair map halved or doubled them.
  template <int each>
  FUSELINE_HD int first_col() const {
    return each == 1 ? col / 2 : each == 2 ? col : 2 * col;
  }
  template <int each>
  FUSELINE_HD int width() const {
    return each == 1 ? cols / 2 : each == 2 ? cols : 2 * cols;
  }
  // Whether all of the slab's columns exist: then nothing has to be masked.
  FUSELINE_HD bool whole() const { return col >= 0 && col + span <= cols; }
};

// Columns [begin, begin + cols) of the result: the same slab, seen from the part. What belongs to
// the part is run only if the slab meets it.
template <class Slab>
FUSELINE_HD Slab columns(const Slab& slab, int begin, int cols) {
  Slab part = slab;
  part.col -= begin;
  part.cols = cols;
  return part;
}
FUSELINE_HD bool meets(const SlabPlace& slab) {
  return slab.col + slab.span > 0 && slab.col < slab.cols;
}
// The same of a part with partial sums along its rows. The last slab of a block of 128 columns
// stores them, and may lie behind the part: the block ends at the part's column `end`.
FUSELINE_HD bool meets(const SlabPlace& slab, int end) {
  return slab.col + slab.span > 0 && slab.col < end;
}

}  // namespace fuseline::gpu
