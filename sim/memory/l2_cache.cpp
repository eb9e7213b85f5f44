#include "sim/memory/l2_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace fuseline {
namespace {

constexpr std::uint32_t kTensorBits = 20;

ChunkRegion rectangle(ChunkPart part) {
  return {part, 0, static_cast<std::int32_t>(part.elements())};
}

// What a range touches in one direction: `count` blocks from `first` on, all of each block but for
// the ends of the range.
struct Span {
  std::int64_t first, count;
  std::uint8_t begin, end;  // of the range, within the first block and within the last

  Span(std::int64_t range_begin, std::int64_t range_end)
      : first(range_begin / kChunkEdge),
        count((range_end - 1) / kChunkEdge + 1 - first),
        begin(static_cast<std::uint8_t>(range_begin - first * kChunkEdge)),
        end(static_cast<std::uint8_t>(range_end - (first + count - 1) * kChunkEdge)) {}
  [[nodiscard]] std::uint8_t begin_in(std::int64_t i) const { return i == 0 ? begin : 0; }
  [[nodiscard]] std::uint8_t end_in(std::int64_t i) const { return i == count - 1 ? end : kWhole; }

  static constexpr std::uint8_t kWhole = kChunkEdge;
};

}  // namespace

Bytes CachedMatrix::chunk_bytes(std::int64_t row_block, std::int64_t col_block) const {
  const std::int64_t height = std::min(kChunkEdge, rows - row_block * kChunkEdge);
  const std::int64_t width = std::min(kChunkEdge, cols - col_block * kChunkEdge);
  return Bytes(height * width * element);
}

L2Cache::L2Cache(Bytes effective_capacity)
    : capacity_(effective_capacity.value()), runs_(1), odd_(1) {
  FUSELINE_ASSERT(capacity_ >= 0, "negative cache capacity");
}

void L2Cache::read(ChunkKey key, ChunkPart part, ElementSize element) {
  access_chunk<Access::read>(key, part, element);
}

void L2Cache::write(ChunkKey key, ChunkPart part, ElementSize element) {
  access_chunk<Access::write>(key, part, element);
}

void L2Cache::read(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                   std::int64_t col_begin, std::int64_t col_end) {
  access_rows<Access::read>(m, row_begin, row_end, col_begin, col_end);
}

void L2Cache::write(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                    std::int64_t col_begin, std::int64_t col_end) {
  access_rows<Access::write>(m, row_begin, row_end, col_begin, col_end);
}

// Rows counted from the matrix's first and through its runs.
template <L2Cache::Access access>
void L2Cache::access_rows(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                          std::int64_t col_begin, std::int64_t col_end) {
  for (std::int64_t row = row_begin; row < row_end;) {
    const std::int64_t left = row_end - row;
    const std::int64_t count = m.at.run == 0 ? left : std::min(left, m.at.run - row % m.at.run);
    const std::int64_t place = m.at.row(row);
    access_range<access>(m, place, place + count, col_begin, col_end);
    row += count;
  }
}

template <L2Cache::Access access>
void L2Cache::access_chunk(ChunkKey key, ChunkPart part, ElementSize element) {
  access_line<access>(
      {key.tensor, element, key.row_block, key.col_block, 1, false, part, part, part});
}

// Ranges one block wide are lines downwards, as a GEMM reads its operands; others go row by row.
template <L2Cache::Access access>
void L2Cache::access_range(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                           std::int64_t col_begin, std::int64_t col_end) {
  FUSELINE_ASSERT(0 <= row_begin && row_end <= m.rows && 0 <= col_begin && col_end <= m.cols,
                  "range outside the tensor");
  if (row_begin >= row_end || col_begin >= col_end) return;
  if (past_ == Past::filling) check_whole_chunks(m, row_begin, row_end, col_begin, col_end);
  const Span rows(row_begin, row_end);
  const Span cols(col_begin, col_end);
  const auto part = [&](std::int64_t row, std::int64_t col) {
    return ChunkPart{rows.begin_in(row), rows.end_in(row), cols.begin_in(col), cols.end_in(col)};
  };
  if (cols.count == 1) {
    access_line<access>({m.tensor,
                         m.element,
                         rows.first,
                         cols.first,
                         rows.count,
                         true,
                         part(0, 0),
                         {0, Span::kWhole, cols.begin, cols.end},
                         part(rows.count - 1, 0)});
    return;
  }
  for (std::int64_t row = 0; row < rows.count; ++row) {
    access_line<access>({m.tensor,
                         m.element,
                         rows.first + row,
                         cols.first,
                         cols.count,
                         false,
                         part(row, 0),
                         {rows.begin_in(row), rows.end_in(row), 0, Span::kWhole},
                         part(row, cols.count - 1)});
  }
}

std::uint64_t L2Cache::page_key(std::uint32_t tensor, std::uint64_t row_block,
                                std::uint64_t col_block) {
  return std::uint64_t{tensor} << (2 * kBlockBits) | row_block / kPageEdge << kBlockBits |
         col_block / kPageEdge;
}

L2Cache::Place L2Cache::place_of(std::uint32_t page, std::uint64_t row_block,
                                 std::uint64_t col_block, std::int64_t count, bool down) const {
  const bool by_rows = pages_[page].by_rows;
  const std::uint64_t row = row_block % kPageEdge, col = col_block % kPageEdge;
  return {page, static_cast<std::uint8_t>(by_rows ? row * kPageEdge + col : col * kPageEdge + row),
          static_cast<std::uint8_t>(count),
          static_cast<std::uint8_t>(down == by_rows ? kPageEdge : 1)};
}

// An empty page takes the order in which its first access goes over it.
std::uint32_t L2Cache::page_of(std::uint64_t key, ElementSize element, bool by_rows) {
  const std::uint32_t number = pages_.page_of(key);
  Page& page = pages_[number];
  if (page.chunks_here == 0) {
    page.element = element;
    page.by_rows = by_rows;
  }
  return number;
}

// Page by page.
template <L2Cache::Access access>
void L2Cache::access_line(const Line& line) {
  FUSELINE_ASSERT(line.tensor >> kTensorBits == 0 &&
                      (line.row_block + (line.down ? line.count : 1)) >> kBlockBits == 0 &&
                      (line.col_block + (line.down ? 1 : line.count)) >> kBlockBits == 0,
                  "chunk key out of range");
  constexpr bool kWrites = access == Access::write;
  std::int64_t grown = 0;
  for (std::int64_t done = 0; done < line.count;) {
    const auto row = static_cast<std::uint64_t>(line.row_block + (line.down ? done : 0));
    const auto col = static_cast<std::uint64_t>(line.col_block + (line.down ? 0 : done));
    const std::uint64_t within = (line.down ? row : col) % kPageEdge;
    const std::int64_t length =
        std::min(line.count - done, static_cast<std::int64_t>(kPageEdge - within));
    const std::uint32_t number =
        page_of(page_key(line.tensor, row, col), line.element, !line.down || line.count == 1);
    const Place place = place_of(number, row, col, length, line.down);
    const Parts parts = line.parts(done, length);
    Page& page = pages_[number];
    const std::uint32_t latest = page.is_here(place.first) ? page.runs[place.first] : 0;
    if (latest != 0 && repeats(latest, place, parts, kWrites)) {
      unlink(latest);
      link_newest(latest);
    } else if (latest == 0 && page.nothing_is_here(place) &&
               length * kChunkEdge * kChunkEdge * line.element <= capacity_) {
      grown += bring_in<access>(place, parts, page);
    } else {
      grown += touch_all<access>(line, done, place, parts);
    }
    done += length;
  }
  if (access == Access::read && grown > 0) {
    hbm_read_ += grown;
    count_missed(line.tensor, grown);
  }
}

// Whether the run's access was the same one, and the latest of all its chunks.
bool L2Cache::repeats(std::uint32_t number, const Place& place, const Parts& parts,
                      bool writes) const {
  const Run& run = runs_[number];
  return run.first == place.first && run.count == place.count && run.stride == place.stride &&
         run.chunks_left == place.count && run.parts == parts && (run.written || !writes);
}

// Chunks some of which may be here. Those at `place` are the line's from `done` on. Returns the
// bytes that came in.
template <L2Cache::Access access>
std::int64_t L2Cache::touch_all(const Line& line, std::int64_t done, const Place& place,
                                const Parts& parts) {
  const std::uint32_t run = new_run(place, parts, access == Access::write);
  Page& page = pages_[place.page];
  std::int64_t grown = 0;
  current_ = run;
  std::size_t at = place.first;
  for (int i = 0; i < place.count; ++i, at += place.stride) {
    const ChunkPart part = line.part(done + i);
    const std::int64_t bytes = touch<access>(page, at, part, run) * line.element;
    if (bytes == 0) continue;
    grown += bytes;
    used_ += bytes;
    if (used_ > capacity_) evict_to_capacity();
  }
  current_ = 0;
  // Chunks that are larger than the whole cache have left it already.
  if (runs_[run].chunks_left == 0) {
    unlink(run);
    free_run(run);
    if (page.chunks_here == 0) pages_.free(place.page);
  }
  return grown;
}

// Chunks of which nothing is here and which all fit at once: older ones may then leave after all
// have come in. Returns the bytes.
template <L2Cache::Access access>
std::int64_t L2Cache::bring_in(const Place& place, const Parts& parts, Page& page) {
  const std::uint32_t number = new_run(place, parts, access == Access::write);
  Run& run = runs_[number];
  page.come(place.first, place.stride, place.count, number);
  const std::int64_t each = parts.first.elements() * page.element;
  const bool equal = parts.first == parts.last && (place.count <= 2 || parts.first == parts.inner);
  std::int64_t bytes = place.count * each;
  if (equal && each <= std::numeric_limits<std::uint16_t>::max()) {
    run.equal_bytes = static_cast<std::uint16_t>(each);
  } else {
    std::int64_t elements = 0;
    std::size_t at = place.first;
    auto& chunks = page.others().chunks;
    for (int i = 0; i < place.count; ++i, at += place.stride) {
      const ChunkPart part = i == 0 ? parts.first : i == place.count - 1 ? parts.last : parts.inner;
      chunks[at] = {part, access == Access::write ? part : ChunkPart{}, 0};
      elements += part.elements();
    }
    bytes = elements * page.element;
  }
  run.chunks_left = place.count;
  page.chunks_here = static_cast<std::uint16_t>(page.chunks_here + place.count);
  used_ += bytes;
  if (used_ > capacity_) evict_to_capacity();
  return bytes;
}

// Makes `run` the latest of the chunk. Returns how many elements came in.
template <L2Cache::Access access>
std::int64_t L2Cache::touch(Page& page, std::size_t at, ChunkPart part, std::uint32_t run) {
  const std::uint32_t before = page.is_here(at) ? page.runs[at] : 0;
  page.runs[at] = run;
  Chunk& chunk = page.others().chunks[at];
  ++runs_[run].chunks_left;
  if (before == 0) {
    ++page.chunks_here;
    page.set_here(at);
    chunk = {part, access == Access::write ? part : ChunkPart{}, 0};
    return part.elements();
  }
  if (runs_[before].equal_bytes > 0) chunk = equal_chunk(runs_[before]);
  leave_run(before);
  if (chunk.odd == 0 && contains(chunk.resident, part)) {
    if (access == Access::read || contains(chunk.dirty, part)) return 0;
    if (contains(part, chunk.dirty)) {
      chunk.dirty = part;
      return 0;
    }
  }
  return add_to_partial<access>(chunk, part);
}

template <L2Cache::Access access>
std::int64_t L2Cache::add_to_partial(Chunk& chunk, ChunkPart part) {
  OddChunk now = regions(chunk);
  if (access == Access::write) bits_.add(now.dirty, part);
  const std::int64_t added = bits_.add(now.resident, part);
  const bool rectangles = now.resident.bits == 0 && now.dirty.bits == 0;
  if (rectangles) {
    if (chunk.odd != 0) free_odd_.push_back(std::exchange(chunk.odd, 0));
    chunk.resident = now.resident.box;
    chunk.dirty = now.dirty.box;
    return added;
  }
  if (chunk.odd == 0) {
    if (free_odd_.empty()) {
      free_odd_.push_back(static_cast<std::uint32_t>(odd_.size()));
      odd_.emplace_back();
    }
    chunk.odd = free_odd_.back();
    free_odd_.pop_back();
    chunk.resident = {};
    chunk.dirty = {};
  }
  odd_[chunk.odd] = now;
  return added;
}

void L2Cache::count_missed(std::uint32_t tensor, std::int64_t bytes) {
  if (tensor >= missed_.size()) missed_.resize(tensor + 1);
  missed_[tensor] += bytes;
}

L2Cache::Chunk L2Cache::equal_chunk(const Run& run) {
  return {run.parts.first, run.written ? run.parts.first : ChunkPart{}, 0};
}

L2Cache::Chunk L2Cache::chunk_at(const Page& page, std::size_t at) const {
  if (!page.is_here(at)) return {};
  const Run& run = runs_[page.runs[at]];
  return run.equal_bytes > 0 ? equal_chunk(run) : page.rest->chunks[at];
}

L2Cache::OddChunk L2Cache::regions(const Chunk& chunk) const {
  if (chunk.odd != 0) return odd_[chunk.odd];
  return {rectangle(chunk.resident), rectangle(chunk.dirty)};
}

std::int64_t L2Cache::resident_elements(const Chunk& chunk) const {
  return chunk.odd == 0 ? chunk.resident.elements() : odd_[chunk.odd].resident.elements;
}

std::int64_t L2Cache::dirty_elements(const Chunk& chunk) const {
  return chunk.odd == 0 ? chunk.dirty.elements() : odd_[chunk.odd].dirty.elements;
}

void L2Cache::drop_regions(Chunk& chunk) {
  bits_.clear(odd_[chunk.odd].resident);
  bits_.clear(odd_[chunk.odd].dirty);
  free_odd_.push_back(chunk.odd);
}

// Returns the bytes that were dirty. Page and run stay, even if nothing is left in them.
std::int64_t L2Cache::forget(Page& page, std::size_t at) {
  Chunk chunk = chunk_at(page, at);
  const std::int64_t dirty = dirty_elements(chunk) * page.element;
  used_ -= resident_elements(chunk) * page.element;
  if (chunk.odd != 0) drop_regions(chunk);
  page.set_gone(at);
  --page.chunks_here;
  if (page.uncertain_here > 0) is_gone(page, at);
  return dirty;
}

void L2Cache::is_gone(Page& page, std::size_t at) {
  if (!page.rest->uncertain[at]) return;
  page.rest->uncertain[at] = false;
  --page.uncertain_here;
  --uncertain_;
}

// Of a run that no chunk has left for another: as many as must go.
inline void L2Cache::evict_equal_chunks(Run& run, Page& page) {
  const std::int64_t over = used_ - capacity_;
  std::uint32_t count = run.chunks_left;
  std::int64_t bytes = std::int64_t{count} * run.equal_bytes;
  if (bytes > over) {  // then `over` is small, and a short division does
    count = (static_cast<std::uint32_t>(over) + run.equal_bytes - 1) / run.equal_bytes;
    bytes = std::int64_t{count} * run.equal_bytes;
  }
  const std::size_t first = run.first_left();
  page.go(first, run.stride, count);
  if (page.uncertain_here > 0) {
    for (std::uint32_t i = 0; i < count; ++i) is_gone(page, first + i * std::size_t{run.stride});
  }
  used_ -= bytes;
  if (run.written) hbm_write_ += bytes;
  run.evicted = static_cast<std::uint8_t>(run.evicted + count);
  run.chunks_left = static_cast<std::uint8_t>(run.chunks_left - count);
  page.chunks_here = static_cast<std::uint16_t>(page.chunks_here - count);
}

void L2Cache::evict_to_capacity() {
  if (past_ == Past::filling) end_filling();
  const std::int64_t before = used_;
  while (used_ > capacity_) {
    const std::uint32_t oldest = runs_[0].newer;
    Run& run = runs_[oldest];
    const std::uint32_t number = run.page;
    Page& page = pages_[number];
    if (run.equal_bytes > 0 && run.is_whole()) {
      evict_equal_chunks(run, page);
    } else {
      evict_one_by_one(oldest, page);
    }
    if (run.chunks_left > 0 || oldest == current_) continue;
    unlink(oldest);
    free_run(oldest);
    // The page of the access that goes on may be empty only for now.
    if (page.chunks_here == 0 && number != runs_[current_].page) pages_.free(number);
  }
  evicted_ += before - used_;
}

void L2Cache::evict_one_by_one(std::uint32_t number, Page& page) {
  Run& run = runs_[number];
  std::size_t at = run.first_left();
  for (; run.chunks_left > 0 && used_ > capacity_; ++run.evicted, at += run.stride) {
    if (!page.is_here(at) || page.runs[at] != number) continue;
    hbm_write_ += forget(page, at);
    --run.chunks_left;
  }
}

std::uint32_t L2Cache::new_run(const Place& place, const Parts& parts, bool written) {
  if (free_run_ == 0) {
    free_run_ = static_cast<std::uint32_t>(runs_.size());
    runs_.emplace_back();
  }
  const std::uint32_t number = free_run_;
  Run& run = runs_[number];
  free_run_ = run.older;
  ++used_runs_;
  run = {place.page, place.first, place.count, place.stride, 0, 0, written, 0, parts, 0, 0};
  link_newest(number);
  return number;
}

void L2Cache::free_run(std::uint32_t run) {
  runs_[run].older = free_run_;
  free_run_ = run;
  --used_runs_;
}

void L2Cache::link_newest(std::uint32_t run) {
  const std::uint32_t second = runs_[0].older;
  runs_[run].newer = 0;
  runs_[run].older = second;
  runs_[second].newer = run;
  runs_[0].older = run;
}

void L2Cache::unlink(std::uint32_t run) {
  runs_[runs_[run].newer].older = runs_[run].older;
  runs_[runs_[run].older].newer = runs_[run].newer;
}

// One of its chunks has a later access, or is gone.
void L2Cache::leave_run(std::uint32_t run) {
  if (--runs_[run].chunks_left > 0) return;
  unlink(run);
  free_run(run);
}

}  // namespace fuseline
