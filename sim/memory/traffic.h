// Bytes that a program asks for, exactly, before any cache; and its compulsory bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "model/plan.h"
#include "sim/memory/tile_shape.h"

namespace fuseline {

// Bytes asked for by the kernel's loads and stores of one tensor, before any cache: tile loads
// included as often as tiles load them. The executor counts the same numbers.
struct RequestedBytes {
  TensorId tensor;
  Bytes loaded;
  Bytes stored;
  Bytes hbm_read{};  // of the loaded bytes, what L2 did not hold (hierarchy)
};

// Bytes loaded and stored per tensor when the program's index space is cut into tiles, clipped at
// the edges:
//   GEMM operands   a once per tile column, b once per tile row, for each GEMM of the batch
//   scales of b     those of a tile's columns, once for each tile of the result
//   groups          of rows share no tile: b of a group once per row of tiles of that group
//   attention       Q once; K, V and bias of the key range that a query tile can see, per head;
//                   what rotates them on the way as often, what appends them to a cache once
//   its gradient    K and V once per head of dK and dV; Q, dY, log-sum-exp and delta of the query
//                   tiles that see a key tile, per key tile; dQ stored once and added to (loaded
//                   and stored) by every further key tile
//   scan            x, decay and states once; k and q once per head of their group
//   tiles           once
//   rows above      a tile's own rows, and above them those of its sequence that its window takes
//   vectors         their part, by every tile that needs it
//   tables          those of the d columns that a row of a tile meets, once
// Loads that follow a Columns primitive happen only in the tiles that hold those columns. Tensors
// in order of first use. The executor counts the same numbers.
std::vector<RequestedBytes> requested_bytes(const Graph& graph, const Program& program,
                                            TileShape tile);

// The same of all phases of a kernel, summed per tensor, each phase with its default tile.
std::vector<RequestedBytes> requested_bytes(const Graph& graph, const Kernel& kernel);

// Sum over tensors, loads and stores.
Bytes total(const std::vector<RequestedBytes>& requested);

// Each distinct element that the kernel loads from or stores to memory once. What one phase of the
// kernel stores and another loads counts only as stored.
struct DistinctBytes {
  Bytes loaded;
  Bytes stored;
};
DistinctBytes distinct_bytes(const Graph& graph, const Kernel& kernel);

// Sum over the kernel's operators.
Flops flops(const Graph& graph, const Kernel& kernel);

}  // namespace fuseline
