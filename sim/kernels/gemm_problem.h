// One GEMM kernel as the simulator sees it: shapes, operands in the L2's address space, tile shape.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/formats/stored_weight.h"
#include "model/gemm_tile.h"
#include "sim/kernels/epilogue_needs.h"
#include "sim/kernels/strided_batches.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

struct MatrixOrigin {
  std::int64_t row = 0;
  std::int64_t col = 0;
};

// The part of a matrix that one GEMM of the batch uses starts at origins[batch index]; no origins =
// (0, 0).
struct GemmOperand {
  CachedMatrix matrix;
  std::vector<MatrixOrigin> origins;
  bool transposed = false;  // stored [k, rows] instead of [rows, k]
  [[nodiscard]] MatrixOrigin origin(std::int64_t batch) const {
    return origins.empty() ? MatrixOrigin{} : origins[static_cast<std::size_t>(batch)];
  }
};

// How an epilogue tensor is addressed by the rows (or columns) of the output tile. `scaled`: the
// tensor has a row for every m/rows output rows (a vector of one row, SwiGLU's half width, partials
// per tile). `repeated`: row i mod rows (RoPE tables).
enum class Addressing : std::uint8_t { scaled, repeated };

// The part of a tensor that the epilogue loads or stores, tile by tile. A GEMM's main output is one
// of them.
struct EpilogueStream {
  CachedMatrix matrix;
  std::int64_t height = 0, width = 0;  // of the part that the whole output of one GEMM addresses
  bool store = false;
  Addressing rows = Addressing::scaled;
  Addressing cols = Addressing::scaled;
  // The tensor's rows go with the output's columns, and its columns with the output's rows: [N,
  // ⌈M/128⌉] partials of sums down the columns.
  bool of_columns = false;
  std::vector<MatrixOrigin> origins;  // where the part begins, as in GemmOperand
  [[nodiscard]] MatrixOrigin origin(std::int64_t batch) const {
    return origins.empty() ? MatrixOrigin{} : origins[static_cast<std::size_t>(batch)];
  }
};

// What the producer of our own mainloop fetches through the ring of operands while the tile is
// still multiplied: tiles and vectors. Threads load tables themselves.
inline bool is_fetched(const EpilogueStream& stream) {
  return !stream.store && stream.rows == Addressing::scaled && stream.cols == Addressing::scaled;
}

// A tensor of scales or zero points beside b. Those of groups of rows lie behind each other, so
// many rows each.
struct GemmScales {
  CachedMatrix matrix;
  ScaleKind kind = ScaleKind::scale;
  std::int64_t rows_of_group = 0;
};

// out[m, n] = a[m, k] b[n, k]^T, `batch` times.
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  // Rows of m in groups that share one matrix of b each, at b's origin of the group's number; batch
  // is 1. Empty: one group.
  std::vector<std::int64_t> groups{};
  // Of every product of the batch the part of k that it sums: parts behind each other, which add up
  // to k. 0: the product is zeros. Empty: each sums all of k.
  std::vector<std::int64_t> depths{};
  // The library takes a batch in calls, one launch each, where its matrices do not all lie at equal
  // distances. Empty: one launch.
  std::vector<StridedBatch> calls{};
  GemmOperand a;
  GemmOperand b;
  StoredWeight weight{};  // the number format of b
  std::vector<GemmScales> scales{};
  StoredWeight activation{};                 // and of a
  std::optional<CachedMatrix> row_scales{};  // of a's rows
  std::vector<EpilogueStream> epilogue;
  // Attention's products, whose rows are as long as a sequence: they are stored padded, however
  // many there are.
  bool rows_of_tokens = false;
  bool library = true;           // the vendor's kernels; otherwise our own mainloop, no split-K
  std::optional<GemmTile> tile;  // empty: chosen
  // Of the tile that a measured kernel ran with: the choice is among the menu's with these edges.
  std::optional<TileEdges> ran{};
  // And of the raster's group, in clusters; empty: gemm_raster.h says it.
  std::optional<std::int64_t> ran_group{};
  EpilogueNeeds needs;                 // of our own mainloop's tiles
  std::uint32_t workspace_tensor = 0;  // names split-K partials in the cache

  // What tiles are chosen for: rows that meet one matrix of b, and how many such products there
  // are.
  [[nodiscard]] std::int64_t typical_rows() const {
    return groups.empty() ? m : ceil_div(m, static_cast<std::int64_t>(groups.size()));
  }
  [[nodiscard]] std::int64_t products() const {
    return groups.empty() ? batch : static_cast<std::int64_t>(groups.size());
  }
  [[nodiscard]] std::int64_t launches() const {
    return calls.empty() ? 1 : static_cast<std::int64_t>(calls.size());
  }
  // Products of one launch, the largest.
  [[nodiscard]] std::int64_t products_at_once() const;
  // What a product sums on average, and what all of them sum together.
  [[nodiscard]] std::int64_t typical_depth() const {
    return depths.empty() ? k : ceil_div(k, static_cast<std::int64_t>(depths.size()));
  }
  [[nodiscard]] std::int64_t total_depth() const { return depths.empty() ? k * batch : k; }
  // Bytes of the scales that columns [k_begin, k_end) of rows [m_begin, m_end) of a bring along.
  [[nodiscard]] std::int64_t row_scale_bytes(std::int64_t m_begin, std::int64_t m_end,
                                             std::int64_t k_begin, std::int64_t k_end) const;
  // Bytes of scales that columns [k_begin, k_end) of rows [n_begin, n_end) of b bring along.
  [[nodiscard]] std::int64_t scale_bytes(std::int64_t n_begin, std::int64_t n_end,
                                         std::int64_t k_begin, std::int64_t k_end) const;
};

// A plain library GEMM on three dense row-major tensors of the given ids, all of `element`.
GemmProblem plain_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::uint32_t a,
                       std::uint32_t b, std::uint32_t out, std::uint32_t workspace,
                       ElementSize element = 2);

}  // namespace fuseline
