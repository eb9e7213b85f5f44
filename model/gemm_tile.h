// The tile of a GEMM kernel, and the tiles that exist.
#pragma once

#include <cstdint>
#include <vector>

namespace fuseline {

// What a measurement says of the tile that a kernel ran with.
struct TileEdges {
  std::int64_t m = 0, n = 0, k = 0;
  friend bool operator==(const TileEdges&, const TileEdges&) = default;
};

// First the tile's edge along our M (tokens), then along our N (output features).
struct GemmTile {
  std::int64_t m = 128;
  std::int64_t n = 128;
  std::int64_t k = 64;  // of one pipeline stage
  std::int64_t stages = 4;
  std::int64_t cluster_m = 1;  // thread blocks that share the N operand by multicast
  std::int64_t cluster_n = 1;  // thread blocks that share the M operand
  std::int64_t cluster_k = 1;  // thread blocks that each multiply a part of K; one adds them up
  std::int64_t split_k = 1;
  // Of our own mainloop: the tiles of a last round that would fill only a part of the GPU are made
  // by so many clusters each, a part of K by each one. In a menu: at most so many.
  std::int64_t tail_parts = 1;
  std::int64_t blocks_per_sm = 1;  // thread blocks that a multiprocessor has at the same time
  // Of the mainloop for weights in codes, which turns them into numbers in registers
  // (cuda/kernels/gemm_codes.cuh). Other tiles of our own multiply numbers, or codes as they are.
  bool dequantises = false;
  // Of these, Hopper's for up to 8 rows, whose thread blocks have all of K
  // (cuda/kernels/sm90/codes_columns.cuh).
  bool whole_depth = false;
  double fetch_bytes_per_cycle = 0;  // operands from L2 into one SM; 0: as most kernels' are
  // The same in a cluster along M one of whose thread blocks has no rows; 0: as in the others.
  double idle_fetch_bytes_per_cycle = 0;
  [[nodiscard]] TileEdges edges() const { return {m, n, k}; }
  // Of our own mainloop's tiles: the weights are the tensor cores' rows, so that m comes in steps
  // of 16, and the two blocks of a cluster share the tokens (cuda/kernels/sm90/turned_tile.cuh).
  [[nodiscard]] bool turned() const { return cluster_n > 1; }
  [[nodiscard]] std::int64_t cluster() const { return cluster_m * cluster_n * cluster_k; }
  friend bool operator==(const GemmTile&, const GemmTile&) = default;
};

// A kernel for groups of rows, taken where a group has `most_rows` rows on average at most, or the
// product `most_columns` columns; 0: always.
struct GroupedTile {
  GemmTile tile;
  std::int64_t most_rows = 0;
  std::int64_t most_columns = 0;
  friend bool operator==(const GroupedTile&, const GroupedTile&) = default;
};

// Tiles that kernels were compiled for (split_k = 1). Where two are as good, the earlier is taken.
struct TileMenu {
  std::vector<GemmTile> library;       // of the vendor's GEMM library
  std::vector<GemmTile> own;           // of the mainloop that runs epilogue programs
  std::vector<GroupedTile> grouped{};  // of the library's kernels for groups of rows, the first
                                       // that applies; empty: as for other products
  std::vector<std::int64_t> splits;    // parts of K that the library can give to other blocks
};

}  // namespace fuseline
