// Which products of codes Hopper's kernel for few rows has, and in which form
// (cuda/kernels/sm90/codes_columns.cuh): a thread block has some columns of the result for all of
// K, and no sum of products goes from block to block. The simulator, the sources of the kernels and
// their launches ask the same function.
#pragma once

#include <cstdint>
#include <optional>

#include "model/formats/stored_weight.h"
#include "model/gemm_tile.h"
#include "sim/kernels/epilogue_needs.h"

namespace fuseline {

// The multiprocessors that the kernels of codes are shaped for, those of an H100 SXM and of an H200
// (scenarios/gpus). A GPU's own number is not asked for: a kernel's source is made for an
// architecture, before anybody knows which of its GPUs will run it, and the simulator must find the
// same form. GPUs with fewer take more rounds.
inline constexpr std::int64_t kMultiprocessorsOfCodes = 132;

inline constexpr std::int64_t kColumnsRows = 8;        // of A, at most
inline constexpr std::int64_t kColumnsStrip = 32;      // columns that one warp finishes
inline constexpr std::int64_t kColumnsConsumers = 16;  // warps of a thread block that multiply
inline constexpr std::int64_t kColumnsThreads = 640;   // of a thread block
inline constexpr std::int64_t kColumnsBoxBytes = 128;  // of a row of weights that come at once

// One product, of rows of numbers.
struct CodesProduct {
  std::int64_t m = 0, n = 0, k = 0;
  StoredWeight weight;
};

// The form that the kernel has for a product.
struct CodesColumns {
  std::int64_t columns = 0;    // of the result, of a thread block: a multiple of 16
  std::int64_t rows = 0;       // of A that shared memory has room for: 1, 2, 4 or 8
  std::int64_t row_warps = 0;  // that share the columns; the other warps take turns along K
  std::int64_t boxes = 0;      // along K
  std::int64_t stages = 0;     // of the ring: all boxes, or a multiple of box_step()
  // Boxes from one of a warp to its next. Each stage must meet the same warps in every round.
  [[nodiscard]] std::int64_t box_step() const { return kColumnsConsumers / row_warps / 2; }
  friend bool operator==(const CodesColumns&, const CodesColumns&) = default;
};

// Nothing where another kernel has the product: more than 8 rows, a K that is no multiple of 8;
// scales that several rows share or that a part of a slice has, zero points, a scale of the whole
// tensor, scales of 8 bits, groups of columns that are no shorter than K; an epilogue that needs
// more columns than a strip has, or that sums along rows otherwise than once, values as wide as the
// product; rows of A and scales that leave the ring too little of the shared memory; and so few
// columns, or rows of A so long beside the codes, that the other is faster.
std::optional<CodesColumns> codes_columns(const CodesProduct& product, const EpilogueNeeds& needs);

// Bytes of shared memory beside the ring.
std::int64_t columns_shared_bytes(const CodesProduct& product, const CodesColumns& form);

// The form as a tile.
GemmTile tile_of(const CodesColumns& form, const StoredWeight& weight);

}  // namespace fuseline
