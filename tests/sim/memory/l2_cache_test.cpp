#include "sim/memory/l2_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <set>
#include <span>
#include <tuple>
#include <vector>

namespace fuseline {
namespace {

ChunkKey chunk(std::uint32_t tensor, std::uint32_t row, std::uint32_t col = 0) {
  return {tensor, row, col};
}

// `bytes` of the chunk, as one-byte elements: whole rows of ten.
ChunkPart part(std::int64_t bytes) { return {0, static_cast<std::uint8_t>(bytes / 10), 0, 10}; }

void expect_traffic(L2Cache& cache, std::int64_t read, std::int64_t write) {
  const HbmTraffic traffic = cache.take_traffic();
  EXPECT_EQ(traffic.read, Bytes(read));
  EXPECT_EQ(traffic.write, Bytes(write));
}

TEST(L2Cache, ReadsTheSameChunkFromHbmOnce) {
  L2Cache cache(Bytes(300));
  cache.read(chunk(1, 0), part(100), 1);
  cache.read(chunk(1, 0), part(100), 1);
  expect_traffic(cache, 100, 0);
  EXPECT_EQ(cache.resident(), Bytes(100));
}

TEST(L2Cache, EvictsTheLeastRecentlyUsedChunk) {
  // Given room for three chunks, and 0 touched again after 1 and 2 came in,
  L2Cache cache(Bytes(300));
  for (const std::uint32_t row : {0U, 1U, 2U, 0U}) cache.read(chunk(1, row), part(100), 1);
  // when a fourth comes in, then 1 leaves and 0 stays.
  cache.read(chunk(1, 3), part(100), 1);
  expect_traffic(cache, 400, 0);
  cache.read(chunk(1, 0), part(100), 1);
  expect_traffic(cache, 0, 0);
  cache.read(chunk(1, 1), part(100), 1);
  expect_traffic(cache, 100, 0);
}

TEST(L2Cache, WritesBackADirtyChunkOnlyWhenItLeaves) {
  L2Cache cache(Bytes(200));
  cache.write(chunk(1, 0), part(100), 1);
  expect_traffic(cache, 0, 0);
  cache.read(chunk(2, 0), part(100), 1);
  cache.read(chunk(2, 1), part(100), 1);  // pushes the written chunk out
  expect_traffic(cache, 200, 100);
  cache.read(chunk(1, 0), part(100), 1);  // and it comes back clean
  cache.read(chunk(2, 0), part(100), 1);
  cache.read(chunk(2, 1), part(100), 1);
  expect_traffic(cache, 300, 0);
}

TEST(L2Cache, AConsumerFindsWhatItsProducerWrote) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), part(100), 1);
  cache.take_traffic();  // the producer's kernel ends
  cache.read(chunk(1, 0), part(100), 1);
  expect_traffic(cache, 0, 0);
  EXPECT_EQ(cache.dirty(), Bytes(100));
}

TEST(L2Cache, ReadsOnlyTheMissingPartOfAPartlyWrittenChunk) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), part(30), 1);
  cache.read(chunk(1, 0), part(100), 1);
  expect_traffic(cache, 70, 0);
  cache.flush();
  expect_traffic(cache, 0, 30);
}

TEST(L2Cache, FlushWritesDirtyBytesOnceAndKeepsContents) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), part(100), 1);
  cache.flush();
  cache.flush();
  expect_traffic(cache, 0, 100);
  EXPECT_EQ(cache.resident(1), Bytes(100));
}

TEST(L2Cache, DiscardForgetsOneTensorWithoutWritingIt) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), part(100), 1);
  cache.write(chunk(2, 0), part(40), 1);
  cache.discard(1);
  cache.flush();
  expect_traffic(cache, 0, 40);
  EXPECT_EQ(cache.resident(1), Bytes(0));
  EXPECT_EQ(cache.resident(2), Bytes(40));
}

TEST(L2Cache, AChunkLargerThanTheCacheStreamsThrough) {
  L2Cache cache(Bytes(50));
  cache.write(chunk(1, 0), part(100), 1);
  expect_traffic(cache, 0, 100);
  EXPECT_EQ(cache.resident(), Bytes(0));
}

TEST(L2Cache, ARangeCountsItsElementsAndTouchesTheirBlocks) {
  // Given a 100 × 130 bf16 tensor: blocks of 64, 36 rows and 64, 64, 2 columns,
  const CachedMatrix m{7, 100, 130, 2};
  EXPECT_EQ(m.row_blocks(), 2);
  EXPECT_EQ(m.col_blocks(), 3);
  EXPECT_EQ(m.chunk_bytes(1, 2), Bytes(36 * 2 * 2));
  L2Cache cache(Bytes(1 << 20));
  // when rows 60..70 of columns 1..129 are read, then each element is read once,
  cache.read(m, 60, 70, 1, 129);
  expect_traffic(cache, 10 * 128 * 2, 0);
  // and the rest of the tensor is what was not there.
  cache.read(m, 0, 100, 0, 130);
  expect_traffic(cache, (100 * 130 - 10 * 128) * 2, 0);
  cache.write(m, 0, 100, 0, 130);
  EXPECT_EQ(cache.dirty(), Bytes(100 * 130 * 2));
}

// A literal least-recently-used list of chunks, newest first, with a set of the resident and of the
// dirty elements of each.
class ListLru {
 public:
  explicit ListLru(std::int64_t capacity) : capacity_(capacity) {}
  // Rows and columns of the whole tensor, half-open.
  void access(std::uint32_t tensor, std::array<std::int64_t, 4> range, bool write) {
    const auto [row_begin, row_end, col_begin, col_end] = range;
    std::map<Chunk, std::set<int>> touched;
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      for (std::int64_t col = col_begin; col < col_end; ++col) {
        const Chunk chunk{tensor, row / kChunkEdge, col / kChunkEdge};
        touched[chunk].insert(static_cast<int>(row % kChunkEdge * kChunkEdge + col % kChunkEdge));
      }
    }
    for (const auto& [chunk, elements] : touched) access(chunk, elements, write);
  }
  void discard(std::uint32_t tensor) {
    entries_.remove_if([&](const Entry& e) { return std::get<0>(e.chunk) == tensor; });
  }
  [[nodiscard]] std::int64_t resident() const {
    std::int64_t sum = 0;
    for (const Entry& e : entries_) sum += bytes(e.resident);
    return sum;
  }
  std::int64_t read_ = 0, written_ = 0;

 private:
  using Chunk = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;
  struct Entry {
    Chunk chunk;
    std::set<int> resident, dirty;
  };
  static std::int64_t bytes(const std::set<int>& elements) { return 2 * std::ssize(elements); }
  void access(const Chunk& chunk, const std::set<int>& elements, bool write) {
    Entry entry{chunk, {}, {}};
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->chunk != chunk) continue;
      entry = *it;
      entries_.erase(it);
      break;
    }
    const std::int64_t before = bytes(entry.resident);
    entry.resident.insert(elements.begin(), elements.end());
    if (write) entry.dirty.insert(elements.begin(), elements.end());
    if (!write) read_ += bytes(entry.resident) - before;
    entries_.push_front(entry);
    while (resident() > capacity_) {
      written_ += bytes(entries_.back().dirty);
      entries_.pop_back();
    }
  }
  std::int64_t capacity_;
  std::list<Entry> entries_;
};

TEST(L2Cache, EqualsALiteralListOfElementsOnRandomTraces) {
  // Two tensors of a few chunks with odd edges; ranges of any place and size, so that heads, tiles
  // and rows cut chunks anywhere.
  const CachedMatrix tensors[] = {{0, 200, 150, 2}, {1, 70, 333, 2}};
  std::mt19937 random(7);
  const auto pick = [&random](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (const std::int64_t capacity : {0, 9000, 40000, 1 << 20}) {
    L2Cache cache{Bytes(capacity)};
    ListLru list(capacity);
    std::int64_t read = 0, written = 0;
    for (int step = 0; step < 400; ++step) {
      const CachedMatrix& m = tensors[random() % 2];
      const std::int64_t row = pick(0, m.rows - 1), col = pick(0, m.cols - 1);
      const std::int64_t row_end = pick(row + 1, std::min(m.rows, row + 80));
      const std::int64_t col_end = pick(col + 1, std::min(m.cols, col + 80));
      const bool write = random() % 3 == 0;
      if (step % 150 == 149) {
        cache.discard(m.tensor);
        list.discard(m.tensor);
      }
      if (write) {
        cache.write(m, row, row_end, col, col_end);
      } else {
        cache.read(m, row, row_end, col, col_end);
      }
      list.access(m.tensor, {row, row_end, col, col_end}, write);
      const HbmTraffic traffic = cache.take_traffic();
      read += traffic.read.value();
      written += traffic.write.value();
      ASSERT_EQ(read, list.read_) << "capacity " << capacity << " step " << step;
      ASSERT_EQ(written, list.written_) << "capacity " << capacity << " step " << step;
      ASSERT_EQ(cache.resident(), Bytes(list.resident()));
    }
  }
}

struct Range {
  std::int64_t row_begin, row_end, col_begin, col_end;
};

void access(L2Cache& cache, const CachedMatrix& m, const Range& r, bool write) {
  if (write) {
    cache.write(m, r.row_begin, r.row_end, r.col_begin, r.col_end);
  } else {
    cache.read(m, r.row_begin, r.row_end, r.col_begin, r.col_end);
  }
}

// Ranges of many chunks, in a row and one below the other, over several of the cache's pages (16
// chunks each way); of two in three the edges are those of chunks.
class RandomRanges {
 public:
  explicit RandomRanges(unsigned seed) : random_(seed) {}
  bool one_in(unsigned n) { return random_() % n == 0; }
  Range of(const CachedMatrix& m, bool whole_chunks) {
    const bool down = one_in(2);
    const auto [row_begin, row_end] = span(m.rows, down ? 20 : 2, whole_chunks);
    const auto [col_begin, col_end] = span(m.cols, down ? 2 : 20, whole_chunks);
    return {row_begin, row_end, col_begin, col_end};
  }

 private:
  std::pair<std::int64_t, std::int64_t> span(std::int64_t size, unsigned most, bool whole_chunks) {
    const auto blocks = static_cast<unsigned>(ceil_div(size, kChunkEdge));
    std::int64_t begin = kChunkEdge * static_cast<std::int64_t>(random_() % blocks);
    std::int64_t end =
        std::min(size, begin + kChunkEdge * static_cast<std::int64_t>(1 + random_() % most));
    if (!whole_chunks && one_in(3)) begin += (end - begin) / 3;
    if (!whole_chunks && one_in(3)) end -= (end - begin) / 3;
    return {begin, end};
  }
  std::mt19937 random_;
};

TEST(L2Cache, EqualsALiteralListOnRunsOfManyChunks) {
  const CachedMatrix tensors[] = {{0, 1300, 1250, 2}, {1, 64, 2500, 2}};
  for (const std::int64_t capacity : {200'000, 1'500'000}) {
    RandomRanges random(11);
    L2Cache cache{Bytes(capacity)};
    ListLru list(capacity);
    std::int64_t read = 0, written = 0;
    for (int step = 0; step < 60; ++step) {
      const CachedMatrix& m = tensors[random.one_in(3) ? 1 : 0];
      const Range r = random.of(m, random.one_in(2));
      const bool write = random.one_in(3);
      // Once more, as the next wave of a GEMM does.
      for (int turn = random.one_in(2) ? 2 : 1; turn > 0; --turn) {
        access(cache, m, r, write);
        list.access(m.tensor, {r.row_begin, r.row_end, r.col_begin, r.col_end}, write);
      }
      const HbmTraffic traffic = cache.take_traffic();
      read += traffic.read.value();
      written += traffic.write.value();
      ASSERT_EQ(read, list.read_) << "capacity " << capacity << " step " << step;
      ASSERT_EQ(written, list.written_) << "capacity " << capacity << " step " << step;
      ASSERT_EQ(cache.resident(), Bytes(list.resident()));
    }
  }
}

// The same accesses move the same bytes in both from now on. `a` names tensor t what `b` names t+2.
void expect_equal_from_now_on(L2Cache& a, L2Cache& b, std::span<const CachedMatrix> tensors,
                              std::uint32_t renamed, RandomRanges& random) {
  for (const CachedMatrix& m : tensors) {
    ASSERT_EQ(a.resident(m.tensor), b.resident(m.tensor + renamed));
    ASSERT_EQ(a.dirty(m.tensor), b.dirty(m.tensor + renamed));
  }
  a.take_traffic();
  b.take_traffic();
  for (int step = 0; step < 30; ++step) {
    CachedMatrix m = tensors[random.one_in(3) ? 1 : 0];
    const Range r = random.of(m, random.one_in(2));
    const bool write = random.one_in(3);
    access(a, m, r, write);
    m.tensor += renamed;
    access(b, m, r, write);
    const HbmTraffic of_a = a.take_traffic();
    const HbmTraffic of_b = b.take_traffic();
    ASSERT_EQ(of_a.read, of_b.read) << "step " << step;
    ASSERT_EQ(of_a.write, of_b.write) << "step " << step;
  }
}

TEST(L2Cache, GoesOnAsBeforeFromContentsThatWerePutBack) {
  const CachedMatrix tensors[] = {{0, 1300, 1250, 2}, {1, 64, 2500, 2}};
  int put_back = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomRanges random(seed);
    const Bytes capacity(random.one_in(2) ? 300'000 : 2'000'000);
    L2Cache cache{capacity};
    for (int step = 0; step < 40; ++step) {
      const CachedMatrix& m = tensors[random.one_in(3) ? 1 : 0];
      access(cache, m, random.of(m, !random.one_in(20)), random.one_in(3));
    }
    std::vector<std::uint32_t> names;
    const auto contents = cache.contents(names);
    if (!contents) continue;  // some chunk holds no rectangle
    ++put_back;
    for (std::uint32_t& name : names) name += 2;
    L2Cache other{capacity};
    other.assume_used_before();
    for (int step = 0; step < 20; ++step) {  // is forgotten
      const CachedMatrix& m = tensors[random.one_in(3) ? 1 : 0];
      access(other, m, random.of(m, !random.one_in(2)), random.one_in(3));
    }
    EXPECT_GT(other.resident(), Bytes());
    other.restore(*contents, names);
    EXPECT_EQ(other.all_traffic().read, Bytes());
    // Contents that were put back are the same contents.
    const auto again = other.contents(names);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, *contents);
    expect_equal_from_now_on(cache, other, tensors, 2, random);
  }
  EXPECT_GE(put_back, 10);
}

TEST(L2Cache, ContentsAreCertainOnlyWhenNothingFromBeforeMatters) {
  const CachedMatrix tensors[] = {{0, 1300, 1250, 2}, {1, 64, 2500, 2}};
  int certain = 0, uncertain = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    RandomRanges random(seed);
    const Bytes capacity(400'000);
    // Given a cache that was used, and one that stands for any that was,
    L2Cache used{capacity};
    for (int step = 0; step < 30; ++step) {
      const CachedMatrix& m = tensors[random.one_in(3) ? 1 : 0];
      access(used, m, random.of(m, random.one_in(2)), random.one_in(2));
    }
    L2Cache any{capacity};
    any.assume_used_before();
    EXPECT_FALSE(any.contents_are_certain());
    // when the same is done to both,
    for (int step = 0; step < 25 && !any.contents_are_certain(); ++step) {
      const CachedMatrix& m = tensors[random.one_in(3) ? 1 : 0];
      const Range r = random.of(m, !random.one_in(30));
      const bool write = random.one_in(3);
      access(used, m, r, write);
      access(any, m, r, write);
    }
    // then they are the same where the second says so.
    if (any.contents_are_certain()) {
      ++certain;
      expect_equal_from_now_on(used, any, tensors, 0, random);
    } else {
      ++uncertain;
    }
  }
  EXPECT_GE(certain, 20);
  EXPECT_GE(uncertain, 3);
}

TEST(L2Cache, AnAccessToAPartLeavesContentsUncertain) {
  const CachedMatrix m{0, 640, 640, 2};
  L2Cache cache(Bytes(100'000));
  cache.assume_used_before();
  cache.read(m, 0, 32, 0, 64);
  EXPECT_FALSE(cache.contents_may_be_certain());
  for (int turn = 0; turn < 3; ++turn) cache.read(m, 0, 640, 0, 640);
  EXPECT_FALSE(cache.contents_are_certain());
}

TEST(L2Cache, TheNeighbouringHeadInTheSameChunkIsAMiss) {
  // Heads of 40 columns: the second lies in chunks that the first one brought in parts.
  const CachedMatrix m{1, 64, 80, 2};
  L2Cache cache(Bytes(1 << 20));
  cache.read(m, 0, 64, 0, 40);
  expect_traffic(cache, 64 * 40 * 2, 0);
  cache.read(m, 0, 64, 40, 80);
  expect_traffic(cache, 64 * 40 * 2, 0);
  // And so do the rows of the next sequence, 50 to a sequence.
  cache.read({2, 100, 64, 2}, 0, 50, 0, 64);
  cache.read({2, 100, 64, 2}, 50, 100, 0, 64);
  expect_traffic(cache, 100 * 64 * 2, 0);
}

TEST(L2Cache, KeepsItsContentsWhenItsTableGrows) {
  // More chunks than the table starts with (2^14): a second pass finds them all.
  constexpr std::uint32_t kChunks = 50000;
  L2Cache cache(Bytes(kChunks * 16));
  for (std::uint32_t i = 0; i < kChunks; ++i)
    cache.read(chunk(3, i % 250, i / 250), {0, 4, 0, 4}, 1);
  expect_traffic(cache, kChunks * 16, 0);
  for (std::uint32_t i = 0; i < kChunks; ++i)
    cache.read(chunk(3, i % 250, i / 250), {0, 4, 0, 4}, 1);
  expect_traffic(cache, 0, 0);
}

}  // namespace
}  // namespace fuseline
