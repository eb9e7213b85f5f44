// The simulated L2: least recently used, write-back, shared by all kernels of a block in order. Its
// contents and its dirty lines survive from kernel to kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/memory/chunk_region.h"

namespace fuseline {

// A chunk is found or evicted as a whole, but which of its elements are resident, and which of them
// are dirty, is known exactly: the neighbouring head in the same chunk is a miss of its own.
struct ChunkKey {
  std::uint32_t tensor = 0;     // below 2^20, given by the caller
  std::uint32_t row_block = 0;  // below 2^22
  std::uint32_t col_block = 0;  // below 2^22
};

// A row-major tensor as the cache sees it. The chunk at the lower or right edge is smaller.
struct CachedMatrix {
  std::uint32_t tensor = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t element_bytes = 2;
  // Row r of an access is row begin + r / run · step + r % run of the tensor; run = 0: begin + r.
  std::int64_t row_begin = 0, row_run = 0, row_step = 0;
  [[nodiscard]] std::int64_t row_blocks() const { return ceil_div(rows, kChunkEdge); }
  [[nodiscard]] std::int64_t col_blocks() const { return ceil_div(cols, kChunkEdge); }
  [[nodiscard]] Bytes chunk_bytes(std::int64_t row_block, std::int64_t col_block) const;
};

struct HbmTraffic {
  Bytes read;
  Bytes write;
};

class L2Cache {
 public:
  // `effective_capacity`: what the cache behaves like, below the nominal size where partitions keep
  // copies.
  explicit L2Cache(Bytes effective_capacity);

  // These elements of the chunk are needed; those that are not resident come from HBM. All accesses
  // to one tensor have the same `element_bytes`.
  void read(ChunkKey key, ChunkPart part, std::int64_t element_bytes);
  // These elements of the chunk are overwritten: they become dirty, nothing is fetched. The dirty
  // elements of a chunk are written to HBM when it is evicted.
  void write(ChunkKey key, ChunkPart part, std::int64_t element_bytes);
  // The chunks that the half-open element range touches, row block by row block; only the elements
  // inside the range count.
  void read(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
            std::int64_t col_begin, std::int64_t col_end);
  void write(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
             std::int64_t col_begin, std::int64_t col_end);

  // Forgets a tensor without writing it back: its memory is dead.
  void discard(std::uint32_t tensor);
  // Writes all dirty bytes to HBM; contents stay, clean.
  void flush();

  // HBM traffic since the last call.
  HbmTraffic take_traffic();
  // Bytes of that tensor read from HBM since the last call, and the same forgotten for all tensors.
  Bytes take_missed(std::uint32_t tensor);
  void forget_missed() { missed_.clear(); }
  [[nodiscard]] Bytes capacity() const { return Bytes(capacity_); }
  [[nodiscard]] Bytes resident() const { return Bytes(used_); }
  [[nodiscard]] Bytes resident(std::uint32_t tensor) const;
  [[nodiscard]] Bytes dirty() const;
  [[nodiscard]] Bytes dirty(std::uint32_t tensor) const;

 private:
  struct Node {  // entry of an intrusive list, most recent first; node 0 is the list's head
    std::uint64_t key;
    std::uint32_t newer, older;
    std::int64_t element_bytes;
    ChunkRegion resident, dirty;
  };
  std::uint32_t find(std::uint64_t key) const;
  std::uint32_t touch_or_insert(std::uint64_t key, std::int64_t element_bytes);
  std::uint32_t bucket(std::uint64_t key) const;
  void link_newest(std::uint32_t node);
  void unlink(std::uint32_t node);
  void erase(std::uint32_t node);
  void evict_to_capacity();
  void grow_table();

  std::int64_t capacity_;
  std::int64_t used_ = 0;
  std::int64_t hbm_read_ = 0;
  std::int64_t hbm_write_ = 0;
  std::vector<std::int64_t> missed_;  // by tensor
  RegionBits bits_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> table_;  // open addressing, 0 = empty, power of two
  std::uint32_t table_shift_ = 0;
  std::uint32_t entries_ = 0;
};

}  // namespace fuseline
