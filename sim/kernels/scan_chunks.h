// Which scans go in chunks on the tensor cores, and how they are laid over thread blocks
// (cuda/kernels/scan/chunks.cuh). All others are walked token by token.
#pragma once

#include <cstdint>
#include <optional>

#include "model/program.h"

namespace fuseline {

constexpr std::int64_t scan_chunk_tokens = 64;

struct ChunkLayout {
  std::int64_t cols = 0;     // of x in a thread block, all of one head
  std::int64_t numbers = 0;  // N

  // Parts of N, each with warps of its own: four warps hold the state.
  [[nodiscard]] std::int64_t across() const { return 64 / cols; }
  [[nodiscard]] std::int64_t threads() const { return 384; }
  [[nodiscard]] std::int64_t shared_bytes() const;
  friend bool operator==(const ChunkLayout&, const ChunkLayout&) = default;
};

// Nothing where a chunk is no product of whole tiles in 16 bits: x, k and q in bf16 (scores and
// states may leave the range of fp16), heads and states of whole tiles of 16 numbers, one rate for
// a head, rows that lie side by side; where there are few tokens; or where a thread block has not
// `shared_bytes` enough. Of a GPU with so many multiprocessors.
std::optional<ChunkLayout> chunk_layout(const Graph& graph, const ScanMainloop& scan,
                                        std::int64_t shared_bytes, std::int64_t multiprocessors);

// Thread blocks of a launch.
std::int64_t chunk_blocks(const ScanShape& shape, const ChunkLayout& layout);

}  // namespace fuseline
