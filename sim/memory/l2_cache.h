// The simulated L2: least recently used, write-back, shared by all kernels of a block in order. Its
// contents and its dirty lines survive from kernel to kernel.
//
// A prediction spends its time here, in millions of accesses, so they are kept cheap:
//   pages  chunks lie in pages of 16 × 16 neighbours, which exist while they hold something; one
//          look-up finds the page, and then an access costs one load and one store a chunk.
//   runs   recency is a list of runs, not of chunks: the up to 16 neighbours of a page that one
//          access touched. An access that repeats one, as the waves of a GEMM do with their panels,
//          moves the run to the front as a whole. A chunk that another access touches leaves its
//          run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "model/graph.h"
#include "sim/memory/chunk_region.h"
#include "sim/memory/l2_contents.h"
#include "sim/memory/l2_page.h"
#include "sim/memory/l2_runs.h"
#include "sim/memory/l2_watcher.h"
#include "sim/memory/page_table.h"

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
  ElementSize element = 2;
  RowRuns at{};  // row r of an access is row at.row(r) of the tensor
  [[nodiscard]] std::int64_t row_blocks() const { return ceil_div(rows, kChunkEdge); }
  [[nodiscard]] std::int64_t col_blocks() const { return ceil_div(cols, kChunkEdge); }
  [[nodiscard]] Bytes chunk_bytes(std::int64_t row_block, std::int64_t col_block) const;
  friend bool operator==(const CachedMatrix&, const CachedMatrix&) = default;
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
  // to one tensor have the same `element`.
  void read(ChunkKey key, ChunkPart part, ElementSize element);
  // These elements of the chunk are overwritten: they become dirty, nothing is fetched. The dirty
  // elements of a chunk are written to HBM when it is evicted.
  void write(ChunkKey key, ChunkPart part, ElementSize element);
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

  // From here on the cache stands for one that was used before, in a way that is not known: it may
  // hold anything that is older than every access from now on. Called before the first access.
  void assume_used_before();
  // Whether every such cache would hold by now exactly what this one holds. It does once the
  // accesses since have filled it (then all that is older is gone), and have replaced what they
  // touched meanwhile (which may have been there already, dirty or not). Until it was full, they
  // must touch all elements of a chunk at once; after an access to a part this is never true.
  [[nodiscard]] bool contents_are_certain();
  [[nodiscard]] bool contents_may_be_certain() const { return past_ != Past::lost; }  // in the end

  // As new, but for the memory that it simulates with.
  void clear();

  // What it holds, and in `tensors` the tensor of each number. Nothing where what is here of some
  // chunk is no rectangle, or is not certain.
  std::optional<L2Contents> contents(std::vector<std::uint32_t>& tensors);
  // The cache holds this and nothing else; no traffic waits to be taken.
  void restore(const L2Contents& contents, std::span<const std::uint32_t> tensors);

  // HBM traffic since the last call.
  HbmTraffic take_traffic();
  [[nodiscard]] Bytes read_since_taken() const { return Bytes(hbm_read_); }

  // From here on the watcher is told of every step that a walk says is over; none: nobody is.
  void watch(L2Watcher* watcher) {
    watcher_ = watcher;
    set_limit();
  }
  void step_ends(const WalkStep& step) const {
    if (watcher_ != nullptr) watcher_->step_ends(step, *this);
  }
  // For watchers, which see it between accesses: all chunks of which it holds something, in no
  // particular order; their bytes; HBM traffic since the cache was made, and bytes that left it to
  // make room.
  [[nodiscard]] std::vector<HeldChunk> held() const;
  [[nodiscard]] Bytes resident() const;
  [[nodiscard]] HbmTraffic all_traffic() const;
  [[nodiscard]] Bytes evicted() const;
  // Bytes of that tensor read from HBM since the last call, and the same forgotten for all tensors.
  Bytes take_missed(std::uint32_t tensor);
  void forget_missed() { missed_.clear(); }
  [[nodiscard]] Bytes capacity() const { return Bytes(capacity_); }
  [[nodiscard]] Bytes resident() {
    evict_to_capacity();
    return Bytes(used_);
  }
  [[nodiscard]] Bytes resident(std::uint32_t tensor);
  [[nodiscard]] Bytes dirty();
  [[nodiscard]] Bytes dirty(std::uint32_t tensor);

 private:
  using Chunk = L2Chunk;
  using Page = L2Page;
  using Place = L2Place;
  using Run = L2Run;
  static constexpr std::uint64_t kPageEdge = Page::kEdge;
  static constexpr std::uint32_t kBlockBits = 22;
  static std::uint32_t tensor_of(std::uint64_t page_key) {
    return static_cast<std::uint32_t>(page_key >> (2 * kBlockBits));
  }

  struct OddChunk {
    ChunkRegion resident, dirty;
  };
  enum class Access : std::uint8_t { read, write };

  // Chunks in a row, or one below the other. Of all between the first and the last one the same
  // part is touched.
  struct Line {
    std::uint32_t tensor;
    std::uint32_t block;         // across the line's direction
    std::uint32_t begin, count;  // along it
    ChunkPart first, inner, last;
  };
  // What of a line lies in one page.
  struct Piece {
    Place place;
    ChunkPart first, inner, last;
    [[nodiscard]] ChunkPart part(std::uint32_t i) const {
      return i == 0 ? first : i + 1 == place.count ? last : inner;
    }
  };

  template <Access access>
  void access_chunk(ChunkKey key, ChunkPart part, ElementSize element);
  template <Access access>
  void access_rows(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                   std::int64_t col_begin, std::int64_t col_end);
  template <Access access>
  void access_range(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                    std::int64_t col_begin, std::int64_t col_end);
  template <Access access, bool down>
  void access_line(const Line& line, ElementSize element);
  template <bool down>
  Piece piece_of(const Line& line, std::uint32_t done, ElementSize element);
  template <Access access>
  [[nodiscard]] std::uint32_t repeated(const Piece& piece, const Page& page) const;
  template <Access access>
  std::int64_t touch_all(const Piece& piece);
  template <Access access>
  std::int64_t bring_in(const Piece& piece, Page& page);
  template <Access access>
  std::int64_t touch(Page& page, std::size_t at, ChunkPart part, std::uint32_t run);
  template <Access access>
  std::int64_t add_to_partial(Chunk& chunk, ChunkPart part);
  void count_missed(std::uint32_t tensor, std::int64_t bytes);

  static Chunk equal_chunk(const Run& run);
  Chunk chunk_at(const Page& page, std::size_t at) const;
  OddChunk regions(const Chunk& chunk) const;
  std::int64_t dirty_elements(const Chunk& chunk) const;
  std::int64_t resident_elements(const Chunk& chunk) const;
  std::int64_t dirty_bytes(const Page& page) const;
  std::int64_t forget(Page& page, std::size_t at);
  void drop_regions(Chunk& chunk);
  void check_whole_chunks(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                          std::int64_t col_begin, std::int64_t col_end);
  void end_filling();
  void is_gone(Page& page, std::size_t at);
  static constexpr std::int64_t kAskedStep = std::int64_t{1} << 16;  // bytes
  [[nodiscard]] std::uint32_t asked_steps() const {
    return static_cast<std::uint32_t>(asked_ / kAskedStep);
  }
  // At most so many bytes came in or were touched after it as there are in the cache with it.
  [[nodiscard]] bool is_surely_kept(const Run& run) const {
    const std::uint32_t steps = asked_steps() - run.asked_before + 1;
    return std::int64_t{steps} * kAskedStep <= capacity_;
  }
  void set_limit();
  void evict_to_capacity();
  void evict_equal_chunks(Run& run, Page& page);
  void evict_one_by_one(std::uint32_t run, Page& page);

  static std::uint64_t page_key(std::uint32_t tensor, std::uint64_t row_block,
                                std::uint64_t col_block) {
    return std::uint64_t{tensor} << (2 * kBlockBits) | row_block / kPageEdge << kBlockBits |
           col_block / kPageEdge;
  }
  template <class Visit>
  void for_each_page(Visit visit) const;

  std::int64_t capacity_;
  std::int64_t used_ = 0;  // above the capacity while somebody must leave
  std::int64_t hbm_read_ = 0;
  std::int64_t hbm_write_ = 0;
  std::int64_t taken_read_ = 0, taken_write_ = 0;  // by take_traffic() so far
  std::int64_t evicted_ = 0;
  L2Watcher* watcher_ = nullptr;
  std::vector<std::int64_t> missed_;  // by tensor

  // Of a cache that was used before: `filling` until the first eviction; then the chunks that are
  // here since before it are counted, which are the uncertain ones.
  enum class Past : std::uint8_t { known, filling, replaced, lost };
  Past past_ = Past::known;
  std::uint32_t uncertain_ = 0;

  PageTable<Page> pages_;

  L2Runs runs_;
  std::uint32_t current_ =
      0;  // the run of the access that goes on; it stays though it may be empty
  // Who must leave may leave late: many at once, when `limit_` is passed, or when somebody looks at
  // what is here and could see a chunk that should be gone.
  std::int64_t limit_ = 0;
  std::int64_t asked_ = 0;  // bytes of all chunks that were touched, each time

  RegionBits bits_;
  std::vector<OddChunk> odd_;  // place 0 stands for none
  std::vector<std::uint32_t> free_odd_;
};

}  // namespace fuseline
