// What an epilogue loads and stores by tiles, as kernel parameters. Each operand is given twice:
// for the copy engine (sm_90: a tensor map, which the host encodes with the box named here) and for
// ordinary loads and stores (sm_80: pointer and leading dimension). Rows start at multiples of 16
// bytes; a store may write the padding up to the next multiple of 16 bytes.
#pragma once

#include "../batch.cuh"
#include "../ptx/tma.cuh"

namespace fuseline::gpu {

// A 16-bit tile with each / 2 times the accumulator's columns. `slot` counts boxes of tile rows ×
// 64 columns in a stage of the ring: 0 for the first operand; each / 2 boxes an operand.
// Box: 64 columns, tile rows; 128-byte swizzle.
template <class T, int slot, int each = 2>
struct TileIn {
  static_assert(sizeof(T) == 2 && (each == 2 || each == 4), "16-bit tiles, once or twice as wide");
  TmaMap map;
  const T* data;
  int ld;
  int begin;  // accumulator column to which the operand's first column belongs: 0, or a part's
};

// A vector along the columns: `count` numbers. Box: 64 elements, no swizzle.
template <class T, int slot>
struct ColsIn {
  TmaMap map;
  const T* data;
  int count;
  int begin;
};

// A tile that the epilogue stores. Box: a warp's 16 rows of the value's columns in a slab, 128 bytes
// at most: 4 · each · groups columns; swizzled by the bytes of its rows (128, 64 or 32).
template <class T>
struct TileOut {
  TmaMap map;
  T* data;
  int ld;
  int cols;          // of the operand, or of one matrix of a batch
  BatchPlace place;  // of a batch's results; the map is then one of matrices (ptx/tma.cuh)
};

// The same for rows that lie apart (one stream's rows of joint sequences, a cache's new rows): in
// runs of `run` rows, each `step` rows after the one before. `whole`: a run is a multiple of 64
// rows, so no box meets two of them and the copy engine stores it: the map has four dimensions, the
// runs are the last. Else threads store each row where it belongs.
template <class T, bool whole>
struct TileOutRuns {
  TileOut<T> tile;  // of all runs' columns; data: row 0 of the first run
  int run, step;
};

}  // namespace fuseline::gpu
