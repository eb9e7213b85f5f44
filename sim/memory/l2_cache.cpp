#include "sim/memory/l2_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace fuseline {
namespace {

constexpr std::uint32_t kTensorBits = 20;
constexpr std::uint32_t kBlockBits = 22;

std::uint64_t pack(ChunkKey key) {
  FUSELINE_ASSERT(key.tensor >> kTensorBits == 0 && key.row_block >> kBlockBits == 0 &&
                      key.col_block >> kBlockBits == 0,
                  "chunk key out of range");
  return (std::uint64_t{key.tensor} << (2 * kBlockBits)) |
         (std::uint64_t{key.row_block} << kBlockBits) | key.col_block;
}

std::uint32_t tensor_of(std::uint64_t packed) {
  return static_cast<std::uint32_t>(packed >> (2 * kBlockBits));
}

// Calls visit(key, part) for each chunk that the element range touches.
template <class Visit>
void for_each_chunk_of_run(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                           std::int64_t col_begin, std::int64_t col_end, Visit visit) {
  FUSELINE_ASSERT(0 <= row_begin && row_end <= m.rows && 0 <= col_begin && col_end <= m.cols,
                  "range outside the tensor");
  for (std::int64_t row = row_begin; row < row_end;) {
    const std::int64_t row_block = row / kChunkEdge;
    const std::int64_t next_row = std::min(row_end, (row_block + 1) * kChunkEdge);
    for (std::int64_t col = col_begin; col < col_end;) {
      const std::int64_t col_block = col / kChunkEdge;
      const std::int64_t next_col = std::min(col_end, (col_block + 1) * kChunkEdge);
      const auto within = [](std::int64_t at, std::int64_t block) {
        return static_cast<std::uint8_t>(at - block * kChunkEdge);
      };
      visit(ChunkKey{m.tensor, static_cast<std::uint32_t>(row_block),
                     static_cast<std::uint32_t>(col_block)},
            ChunkPart{within(row, row_block), within(next_row, row_block), within(col, col_block),
                      within(next_col, col_block)});
      col = next_col;
    }
    row = next_row;
  }
}

// The same, rows counted from the matrix's first and through its runs.
template <class Visit>
void for_each_chunk(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                    std::int64_t col_begin, std::int64_t col_end, Visit visit) {
  if (m.row_run == 0)
    return for_each_chunk_of_run(m, m.row_begin + row_begin, m.row_begin + row_end, col_begin,
                                 col_end, visit);
  for (std::int64_t row = row_begin; row < row_end;) {
    const std::int64_t place = m.row_begin + row / m.row_run * m.row_step + row % m.row_run;
    const std::int64_t count = std::min(row_end - row, m.row_run - row % m.row_run);
    for_each_chunk_of_run(m, place, place + count, col_begin, col_end, visit);
    row += count;
  }
}

}  // namespace

Bytes CachedMatrix::chunk_bytes(std::int64_t row_block, std::int64_t col_block) const {
  const std::int64_t height = std::min(kChunkEdge, rows - row_block * kChunkEdge);
  const std::int64_t width = std::min(kChunkEdge, cols - col_block * kChunkEdge);
  return Bytes(height * width * element_bytes);
}

L2Cache::L2Cache(Bytes effective_capacity) : capacity_(effective_capacity.value()) {
  FUSELINE_ASSERT(capacity_ >= 0, "negative cache capacity");
  nodes_.push_back({~std::uint64_t{0}, 0, 0, 0, {}, {}});
  table_.assign(std::size_t{1} << 14, 0);
  table_shift_ = 64 - 14;
}

void L2Cache::read(ChunkKey key, ChunkPart part, std::int64_t element_bytes) {
  Node& node = nodes_[touch_or_insert(pack(key), element_bytes)];
  const std::int64_t missing = bits_.add(node.resident, part) * element_bytes;
  if (missing == 0) return;
  hbm_read_ += missing;
  if (key.tensor >= missed_.size()) missed_.resize(key.tensor + 1);
  missed_[key.tensor] += missing;
  used_ += missing;
  evict_to_capacity();
}

void L2Cache::write(ChunkKey key, ChunkPart part, std::int64_t element_bytes) {
  Node& node = nodes_[touch_or_insert(pack(key), element_bytes)];
  bits_.add(node.dirty, part);
  const std::int64_t grown = bits_.add(node.resident, part) * element_bytes;
  if (grown == 0) return;
  used_ += grown;
  evict_to_capacity();
}

void L2Cache::read(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                   std::int64_t col_begin, std::int64_t col_end) {
  for_each_chunk(m, row_begin, row_end, col_begin, col_end,
                 [&](ChunkKey key, ChunkPart part) { read(key, part, m.element_bytes); });
}

void L2Cache::write(const CachedMatrix& m, std::int64_t row_begin, std::int64_t row_end,
                    std::int64_t col_begin, std::int64_t col_end) {
  for_each_chunk(m, row_begin, row_end, col_begin, col_end,
                 [&](ChunkKey key, ChunkPart part) { write(key, part, m.element_bytes); });
}

void L2Cache::discard(std::uint32_t tensor) {
  for (std::uint32_t node = nodes_[0].older; node != 0;) {
    const std::uint32_t older = nodes_[node].older;
    if (tensor_of(nodes_[node].key) == tensor) erase(node);
    node = older;
  }
}

void L2Cache::flush() {
  for (std::uint32_t node = nodes_[0].older; node != 0; node = nodes_[node].older) {
    hbm_write_ += nodes_[node].dirty.elements * nodes_[node].element_bytes;
    bits_.clear(nodes_[node].dirty);
  }
}

HbmTraffic L2Cache::take_traffic() {
  const HbmTraffic traffic{Bytes(hbm_read_), Bytes(hbm_write_)};
  hbm_read_ = 0;
  hbm_write_ = 0;
  return traffic;
}

Bytes L2Cache::take_missed(std::uint32_t tensor) {
  return tensor < missed_.size() ? Bytes(std::exchange(missed_[tensor], 0)) : Bytes(0);
}

Bytes L2Cache::resident(std::uint32_t tensor) const {
  std::int64_t bytes = 0;
  for (std::uint32_t node = nodes_[0].older; node != 0; node = nodes_[node].older) {
    if (tensor_of(nodes_[node].key) == tensor)
      bytes += nodes_[node].resident.elements * nodes_[node].element_bytes;
  }
  return Bytes(bytes);
}

Bytes L2Cache::dirty() const {
  std::int64_t bytes = 0;
  for (std::uint32_t node = nodes_[0].older; node != 0; node = nodes_[node].older) {
    bytes += nodes_[node].dirty.elements * nodes_[node].element_bytes;
  }
  return Bytes(bytes);
}

Bytes L2Cache::dirty(std::uint32_t tensor) const {
  std::int64_t bytes = 0;
  for (std::uint32_t node = nodes_[0].older; node != 0; node = nodes_[node].older) {
    if (tensor_of(nodes_[node].key) == tensor)
      bytes += nodes_[node].dirty.elements * nodes_[node].element_bytes;
  }
  return Bytes(bytes);
}

// Multiplicative hash: the top bits of key × 2^64 / golden ratio.
std::uint32_t L2Cache::bucket(std::uint64_t key) const {
  return static_cast<std::uint32_t>((key * 0x9E3779B97F4A7C15U) >> table_shift_);
}

std::uint32_t L2Cache::find(std::uint64_t key) const {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = bucket(key); table_[i] != 0; i = (i + 1) & mask) {
    if (nodes_[table_[i]].key == key) return table_[i];
  }
  return 0;
}

std::uint32_t L2Cache::touch_or_insert(std::uint64_t key, std::int64_t element_bytes) {
  if (const std::uint32_t found = find(key); found != 0) {
    if (nodes_[0].older != found) {
      unlink(found);
      link_newest(found);
    }
    return found;
  }
  std::uint32_t node = 0;
  if (free_.empty()) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({});
  } else {
    node = free_.back();
    free_.pop_back();
  }
  nodes_[node] = {key, 0, 0, element_bytes, {}, {}};
  if (++entries_ * std::size_t{2} > table_.size()) grow_table();
  const std::size_t mask = table_.size() - 1;
  std::size_t i = bucket(key);
  while (table_[i] != 0) i = (i + 1) & mask;
  table_[i] = node;
  link_newest(node);
  return node;
}

void L2Cache::link_newest(std::uint32_t node) {
  const std::uint32_t second = nodes_[0].older;
  nodes_[node].newer = 0;
  nodes_[node].older = second;
  nodes_[second].newer = node;
  nodes_[0].older = node;
}

void L2Cache::unlink(std::uint32_t node) {
  nodes_[nodes_[node].newer].older = nodes_[node].older;
  nodes_[nodes_[node].older].newer = nodes_[node].newer;
}

// Takes the node out of list and table. The hole is closed by moving back every later entry of the
// probe run whose home bucket lies at or before the hole.
void L2Cache::erase(std::uint32_t node) {
  used_ -= nodes_[node].resident.elements * nodes_[node].element_bytes;
  bits_.clear(nodes_[node].resident);
  bits_.clear(nodes_[node].dirty);
  unlink(node);
  free_.push_back(node);
  --entries_;
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = bucket(nodes_[node].key);
  while (table_[hole] != node) hole = (hole + 1) & mask;
  for (std::size_t next = (hole + 1) & mask; table_[next] != 0; next = (next + 1) & mask) {
    const std::size_t home = bucket(nodes_[table_[next]].key);
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      table_[hole] = table_[next];
      hole = next;
    }
  }
  table_[hole] = 0;
}

void L2Cache::evict_to_capacity() {
  while (used_ > capacity_) {
    const std::uint32_t oldest = nodes_[0].newer;
    hbm_write_ += nodes_[oldest].dirty.elements * nodes_[oldest].element_bytes;
    erase(oldest);
  }
}

void L2Cache::grow_table() {
  table_.assign(table_.size() * 2, 0);
  --table_shift_;
  const std::size_t mask = table_.size() - 1;
  for (std::uint32_t node = nodes_[0].older; node != 0; node = nodes_[node].older) {
    std::size_t i = bucket(nodes_[node].key);
    while (table_[i] != 0) i = (i + 1) & mask;
    table_[i] = node;
  }
}

}  // namespace fuseline
