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
  std::uint32_t first, count;
  std::uint8_t begin, end;  // of the range, within the first block and within the last

  Span(std::int64_t range_begin, std::int64_t range_end)
      : first(static_cast<std::uint32_t>(block(range_begin))),
        count(static_cast<std::uint32_t>(block(range_end - 1) + 1 - block(range_begin))),
        begin(static_cast<std::uint8_t>(static_cast<std::uint64_t>(range_begin) % kChunkEdge)),
        end(static_cast<std::uint8_t>(static_cast<std::uint64_t>(range_end - 1) % kChunkEdge + 1)) {
  }
  [[nodiscard]] std::uint8_t begin_in(std::uint32_t i) const { return i == 0 ? begin : 0; }
  [[nodiscard]] std::uint8_t end_in(std::uint32_t i) const { return i == count - 1 ? end : kWhole; }
  static std::uint64_t block(std::int64_t at) {
    return static_cast<std::uint64_t>(at) / kChunkEdge;
  }

  static constexpr std::uint8_t kWhole = kChunkEdge;
};

}  // namespace

Bytes CachedMatrix::chunk_bytes(std::int64_t row_block, std::int64_t col_block) const {
  const std::int64_t height = std::min(kChunkEdge, rows - row_block * kChunkEdge);
  const std::int64_t width = std::min(kChunkEdge, cols - col_block * kChunkEdge);
  return Bytes(height * width * element);
}

L2Cache::L2Cache(Bytes effective_capacity) : capacity_(effective_capacity.value()), odd_(1) {
  FUSELINE_ASSERT(capacity_ >= 0, "negative cache capacity");
  set_limit();
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
  access_line<access, false>({key.tensor, key.row_block, key.col_block, 1, part, part, part},
                             element);
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
  FUSELINE_ASSERT(m.tensor >> kTensorBits == 0 && (rows.first + rows.count) >> kBlockBits == 0 &&
                      (cols.first + cols.count) >> kBlockBits == 0,
                  "chunk key out of range");
  const auto part = [&](std::uint32_t row, std::uint32_t col) {
    return ChunkPart{rows.begin_in(row), rows.end_in(row), cols.begin_in(col), cols.end_in(col)};
  };
  if (cols.count == 1) {
    access_line<access, true>(
        {m.tensor, cols.first, rows.first, rows.count, part(0, 0),
         ChunkPart{0, Span::kWhole, cols.begin, cols.end}, part(rows.count - 1, 0)},
        m.element);
    return;
  }
  for (std::uint32_t row = 0; row < rows.count; ++row) {
    access_line<access, false>({m.tensor, rows.first + row, cols.first, cols.count, part(row, 0),
                                ChunkPart{rows.begin_in(row), rows.end_in(row), 0, Span::kWhole},
                                part(row, cols.count - 1)},
                               m.element);
  }
}

// The part of a line that lies in one page. An empty page takes the order in which its first access
// goes over it.
template <bool down>
inline L2Cache::Piece L2Cache::piece_of(const Line& line, std::uint32_t done, ElementSize element) {
  constexpr std::uint32_t kEdge = Page::kEdge;
  const std::uint32_t along = line.begin + done;
  const std::uint32_t within = along % kEdge;
  const std::uint32_t length = std::min(line.count - done, kEdge - within);
  const std::uint32_t number = pages_.page_of(down ? page_key(line.tensor, along, line.block)
                                                   : page_key(line.tensor, line.block, along));
  Page& page = pages_[number];
  if (page.chunks_here == 0) {
    page.element = element;
    page.by_rows = !down || line.count == 1;
  }
  const bool side_by_side = page.by_rows != down;
  const std::uint32_t other = line.block % kEdge;
  Piece piece;
  piece.place = {
      number,
      static_cast<std::uint8_t>(side_by_side ? other * kEdge + within : within * kEdge + other),
      static_cast<std::uint8_t>(length), static_cast<std::uint8_t>(side_by_side ? 1 : kEdge)};
  piece.first = done == 0 ? line.first : done == line.count - 1 ? line.last : line.inner;
  piece.inner = line.inner;
  piece.last = length == 1 ? piece.first : done + length == line.count ? line.last : line.inner;
  return piece;
}

template L2Cache::Piece L2Cache::piece_of<true>(const Line&, std::uint32_t, ElementSize);
template L2Cache::Piece L2Cache::piece_of<false>(const Line&, std::uint32_t, ElementSize);

// Page by page.
template <L2Cache::Access access, bool down>
inline void L2Cache::access_line(const Line& line, ElementSize element) {
  const std::int64_t whole_chunk = kChunkEdge * kChunkEdge * element;
  std::int64_t grown = 0;
  for (std::uint32_t done = 0; done < line.count;) {
    const Piece piece = piece_of<down>(line, done, element);
    Page& page = pages_[piece.place.page];
    const std::int64_t asked = piece.place.count * whole_chunk;
    // What is not here with those that should have left is not here without them.
    if (page.nothing_is_here(piece.place) && asked <= capacity_) {
      grown += bring_in<access>(piece, page);
    } else {
      const std::uint32_t same = repeated<access>(piece, page);
      const bool owes = used_ > capacity_;
      if (owes && (same == 0 || !is_surely_kept(runs_[same]))) {
        evict_to_capacity();
        continue;
      }
      if (same != 0)
        runs_.make_newest(same, asked_steps());
      else
        grown += touch_all<access>(piece);
    }
    asked_ += asked;
    done += piece.place.count;
  }
  if (access == Access::read && grown > 0) {
    hbm_read_ += grown;
    count_missed(line.tensor, grown);
  }
}

// The run that was the same access, and is the latest of all its chunks; 0: none.
template <L2Cache::Access access>
inline std::uint32_t L2Cache::repeated(const Piece& piece, const Page& page) const {
  if (!page.is_here(piece.place.first)) return 0;
  const std::uint32_t latest = page.runs[piece.place.first];
  const Run& run = runs_[latest];
  const bool same = run.is_at(piece.place) && run.chunks_left == piece.place.count &&
                    run.first_part == piece.first && run.last_part == piece.last &&
                    (run.written || access == Access::read);
  return same ? latest : 0;
}

// Chunks some of which may be here. Returns the bytes that came in.
template <L2Cache::Access access>
std::int64_t L2Cache::touch_all(const Piece& piece) {
  const Place& place = piece.place;
  const std::uint32_t run =
      runs_.add(place, piece.first, piece.last, access == Access::write, asked_steps());
  Page& page = pages_[place.page];
  std::int64_t grown = 0;
  current_ = run;
  std::size_t at = place.first;
  for (std::uint32_t i = 0; i < place.count; ++i, at += place.stride) {
    const std::int64_t bytes = touch<access>(page, at, piece.part(i), run) * page.element;
    if (bytes == 0) continue;
    grown += bytes;
    used_ += bytes;
    if (used_ > capacity_) evict_to_capacity();
  }
  current_ = 0;
  // Chunks that are larger than the whole cache have left it already.
  if (runs_[run].chunks_left == 0) {
    runs_.remove(run);
    if (page.chunks_here == 0) pages_.free(place.page);
  }
  return grown;
}

// Chunks of which nothing is here and which all fit at once: older ones may then leave after all
// have come in. Returns the bytes.
template <L2Cache::Access access>
inline std::int64_t L2Cache::bring_in(const Piece& piece, Page& page) {
  const Place& place = piece.place;
  const std::uint32_t number =
      runs_.add(place, piece.first, piece.last, access == Access::write, asked_steps());
  Run& run = runs_[number];
  page.come(place.first, place.stride, place.count, number);
  const std::int64_t each = piece.first.elements() * page.element;
  const bool equal = piece.first == piece.last && (place.count <= 2 || piece.first == piece.inner);
  std::int64_t bytes = place.count * each;
  if (equal && each <= std::numeric_limits<std::uint16_t>::max()) {
    run.equal_bytes = static_cast<std::uint16_t>(each);
  } else {
    std::int64_t elements = 0;
    std::size_t at = place.first;
    auto& chunks = page.others().chunks;
    for (std::uint32_t i = 0; i < place.count; ++i, at += place.stride) {
      const ChunkPart part = piece.part(i);
      chunks[at] = {part, access == Access::write ? part : ChunkPart{}, 0};
      elements += part.elements();
    }
    bytes = elements * page.element;
  }
  run.chunks_left = place.count;
  page.chunks_here = static_cast<std::uint16_t>(page.chunks_here + place.count);
  used_ += bytes;
  if (used_ > limit_) evict_to_capacity();
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
  runs_.leave(before);
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
  return {run.first_part, run.written ? run.first_part : ChunkPart{}, 0};
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

}  // namespace fuseline
