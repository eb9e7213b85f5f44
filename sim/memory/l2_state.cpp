// What an L2 holds: asked, forgotten, written back, taken out as a value and put back, and whether
// it is certain.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

template <class Visit>
void L2Cache::for_each_page(Visit visit) const {
  pages_.for_each([&](const Page& page) {
    if (page.chunks_here > 0) visit(page);
  });
}

void L2Cache::assume_used_before() {
  FUSELINE_ASSERT(used_ == 0, "the cache was used already");
  past_ = Past::filling;
  set_limit();
}

bool L2Cache::contents_are_certain() {
  evict_to_capacity();
  return past_ == Past::known || (past_ == Past::replaced && uncertain_ == 0);
}

void L2Cache::check_whole_chunks(const CachedMatrix& m, std::int64_t row_begin,
                                 std::int64_t row_end, std::int64_t col_begin,
                                 std::int64_t col_end) {
  const auto whole = [](std::int64_t begin, std::int64_t end, std::int64_t size) {
    return begin % kChunkEdge == 0 && (end % kChunkEdge == 0 || end == size);
  };
  if (whole(row_begin, row_end, m.rows) && whole(col_begin, col_end, m.cols)) return;
  past_ = Past::lost;
  set_limit();
}

void L2Cache::end_filling() {
  past_ = Past::replaced;
  set_limit();
  pages_.for_each([&](Page& page) {
    if (page.chunks_here == 0) return;
    for (std::size_t at = 0; at < Page::kChunks; ++at)
      page.others().uncertain[at] = page.is_here(at);
    page.uncertain_here = page.chunks_here;
    uncertain_ += page.chunks_here;
  });
}

void L2Cache::discard(std::uint32_t tensor) {
  evict_to_capacity();
  for (std::uint32_t number = 1; number < pages_.end(); ++number) {
    Page& page = pages_[number];
    if (page.chunks_here == 0 || tensor_of(page.key) != tensor) continue;
    for (std::size_t at = 0; at < Page::kChunks; ++at) {
      if (!page.is_here(at)) continue;
      const std::uint32_t run = page.runs[at];
      forget(page, at);
      runs_.leave(run);
    }
    pages_.free(number);
  }
}

void L2Cache::flush() {
  evict_to_capacity();
  hbm_write_ += dirty().value();
  pages_.for_each([&](Page& page) {
    for (std::size_t at = 0; at < Page::kChunks; ++at) {
      if (!page.is_here(at) || runs_[page.runs[at]].equal_bytes > 0) continue;
      Chunk& chunk = page.rest->chunks[at];
      chunk.dirty = {};
      if (chunk.odd != 0) bits_.clear(odd_[chunk.odd].dirty);
    }
  });
  runs_.all_clean();
}

HbmTraffic L2Cache::take_traffic() {
  evict_to_capacity();
  const HbmTraffic traffic{Bytes(hbm_read_), Bytes(hbm_write_)};
  taken_read_ += hbm_read_;
  taken_write_ += hbm_write_;
  hbm_read_ = 0;
  hbm_write_ = 0;
  return traffic;
}

Bytes L2Cache::take_missed(std::uint32_t tensor) {
  return tensor < missed_.size() ? Bytes(std::exchange(missed_[tensor], 0)) : Bytes(0);
}

Bytes L2Cache::resident(std::uint32_t tensor) {
  evict_to_capacity();
  std::int64_t bytes = 0;
  for_each_page([&](const Page& page) {
    if (tensor_of(page.key) != tensor) return;
    for (std::size_t at = 0; at < Page::kChunks; ++at)
      bytes += resident_elements(chunk_at(page, at)) * page.element;
  });
  return Bytes(bytes);
}

std::int64_t L2Cache::dirty_bytes(const Page& page) const {
  std::int64_t elements = 0;
  for (std::size_t at = 0; at < Page::kChunks; ++at) elements += dirty_elements(chunk_at(page, at));
  return elements * page.element;
}

Bytes L2Cache::dirty() {
  evict_to_capacity();
  std::int64_t bytes = 0;
  for_each_page([&](const Page& page) { bytes += dirty_bytes(page); });
  return Bytes(bytes);
}

Bytes L2Cache::dirty(std::uint32_t tensor) {
  evict_to_capacity();
  std::int64_t bytes = 0;
  for_each_page([&](const Page& page) {
    if (tensor_of(page.key) == tensor) bytes += dirty_bytes(page);
  });
  return Bytes(bytes);
}

Bytes L2Cache::resident() const {
  FUSELINE_ASSERT(used_ <= capacity_, "some chunks have still to leave");
  return Bytes(used_);
}

HbmTraffic L2Cache::all_traffic() const {
  FUSELINE_ASSERT(used_ <= capacity_, "some chunks have still to leave");
  return {Bytes(taken_read_ + hbm_read_), Bytes(taken_write_ + hbm_write_)};
}

Bytes L2Cache::evicted() const {
  FUSELINE_ASSERT(used_ <= capacity_, "some chunks have still to leave");
  return Bytes(evicted_);
}

std::vector<HeldChunk> L2Cache::held() const {
  FUSELINE_ASSERT(used_ <= capacity_, "some chunks have still to leave");
  constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlockBits) - 1;
  std::vector<HeldChunk> all;
  for_each_page([&](const Page& page) {
    const auto row = static_cast<std::uint32_t>((page.key >> kBlockBits & kBlockMask) * kPageEdge);
    const auto col = static_cast<std::uint32_t>((page.key & kBlockMask) * kPageEdge);
    for (std::size_t at = 0; at < Page::kChunks; ++at) {
      if (!page.is_here(at)) continue;
      all.push_back({tensor_of(page.key), row + static_cast<std::uint32_t>(page.row(at)),
                     col + static_cast<std::uint32_t>(page.col(at)),
                     dirty_elements(chunk_at(page, at)) > 0});
    }
  });
  return all;
}

void L2Cache::clear() {
  pages_.for_each([](Page& page) {
    page.here.fill(0);
    if (page.uncertain_here > 0) page.rest->uncertain.reset();
    page.chunks_here = page.uncertain_here = 0;
  });
  pages_.free_all();
  runs_.clear();
  odd_.resize(1);
  free_odd_.clear();
  bits_ = {};
  missed_.clear();
  used_ = hbm_read_ = hbm_write_ = taken_read_ = taken_write_ = evicted_ = asked_ = 0;
  past_ = Past::known;
  uncertain_ = 0;
  watcher_ = nullptr;
  set_limit();
}

std::optional<L2Contents> L2Cache::contents(std::vector<std::uint32_t>& tensors) {
  evict_to_capacity();
  if (!contents_are_certain()) return std::nullopt;
  constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlockBits) - 1;
  L2Contents out{capacity_, {}, {}, 0};
  tensors.clear();
  const auto number_of = [&](std::uint32_t tensor, ElementSize element) {
    const auto found = std::find(tensors.begin(), tensors.end(), tensor);
    const auto number = static_cast<std::uint32_t>(found - tensors.begin());
    if (found == tensors.end()) {
      tensors.push_back(tensor);
      out.elements.push_back(element);
    }
    return number;
  };
  out.pieces.reserve(runs_.size());
  for (std::uint32_t number = runs_.oldest(); number != 0; number = runs_[number].newer) {
    const Run& run = runs_[number];
    const Page& page = pages_[run.page];
    const auto row = static_cast<std::uint32_t>((page.key >> kBlockBits & kBlockMask) * kPageEdge);
    const auto col = static_cast<std::uint32_t>((page.key & kBlockMask) * kPageEdge);
    const std::uint32_t tensor = number_of(tensor_of(page.key), page.element);
    const bool down = page.is_down(run.stride);
    bool joins = false;  // the chunk before is in the last piece
    std::size_t at = run.first_left();
    for (int i = run.evicted; i < run.count; ++i, at += run.stride) {
      if (!page.is_here(at) || page.runs[at] != number) {
        joins = false;
        continue;
      }
      const Chunk chunk = chunk_at(page, at);
      if (chunk.odd != 0) return std::nullopt;
      if (joins && out.pieces.back().resident == chunk.resident &&
          out.pieces.back().dirty == chunk.dirty) {
        ++out.pieces.back().count;
        continue;
      }
      out.pieces.push_back({tensor, row + static_cast<std::uint32_t>(page.row(at)),
                            col + static_cast<std::uint32_t>(page.col(at)), 1, down, chunk.resident,
                            chunk.dirty});
      joins = true;
      if (run.equal_bytes > 0 && run.is_whole()) {
        out.pieces.back().count = run.chunks_left;
        break;
      }
    }
  }
  out.set_hash();
  return out;
}

void L2Cache::restore(const L2Contents& contents, std::span<const std::uint32_t> tensors) {
  FUSELINE_ASSERT(contents.capacity == capacity_, "contents of a cache of another size");
  clear();
  for (const L2Contents::Piece& piece : contents.pieces) {
    const ElementSize element = contents.elements[piece.tensor];
    const Line line{tensors[piece.tensor],
                    piece.down ? piece.col_block : piece.row_block,
                    piece.down ? piece.row_block : piece.col_block,
                    piece.count,
                    piece.resident,
                    piece.resident,
                    piece.resident};
    const Place place =
        (piece.down ? piece_of<true>(line, 0, element) : piece_of<false>(line, 0, element)).place;
    Page& page = pages_[place.page];
    const bool written = piece.dirty == piece.resident;
    const std::uint32_t run =
        runs_.add(place, piece.resident, piece.resident, written, asked_steps());
    asked_ += place.count * (kChunkEdge * kChunkEdge * element);
    const std::int64_t each = piece.resident.elements() * element;
    const bool equal = (written || piece.dirty == ChunkPart{}) &&
                       each <= std::numeric_limits<std::uint16_t>::max();
    if (equal) runs_[run].equal_bytes = static_cast<std::uint16_t>(each);
    page.come(place.first, place.stride, place.count, run);
    if (!equal) {
      std::size_t at = place.first;
      for (int i = 0; i < place.count; ++i, at += place.stride)
        page.others().chunks[at] = {piece.resident, piece.dirty, 0};
    }
    runs_[run].chunks_left = place.count;
    page.chunks_here = static_cast<std::uint16_t>(page.chunks_here + place.count);
    used_ += place.count * each;
  }
}

}  // namespace fuseline
