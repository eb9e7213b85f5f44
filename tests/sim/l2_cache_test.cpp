#include "sim/l2_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <random>

namespace fuseline {
namespace {

ChunkKey chunk(std::uint32_t tensor, std::uint32_t row, std::uint32_t col = 0) {
  return {tensor, row, col};
}

void expect_traffic(L2Cache& cache, std::int64_t read, std::int64_t write) {
  const HbmTraffic traffic = cache.take_traffic();
  EXPECT_EQ(traffic.read, Bytes(read));
  EXPECT_EQ(traffic.write, Bytes(write));
}

TEST(L2Cache, ReadsTheSameChunkFromHbmOnce) {
  L2Cache cache(Bytes(300));
  cache.read(chunk(1, 0), Bytes(100));
  cache.read(chunk(1, 0), Bytes(100));
  expect_traffic(cache, 100, 0);
  EXPECT_EQ(cache.resident(), Bytes(100));
}

TEST(L2Cache, EvictsTheLeastRecentlyUsedChunk) {
  // Given room for three chunks, and 0 touched again after 1 and 2 came in,
  L2Cache cache(Bytes(300));
  for (const std::uint32_t row : {0U, 1U, 2U, 0U}) cache.read(chunk(1, row), Bytes(100));
  // when a fourth comes in, then 1 leaves and 0 stays.
  cache.read(chunk(1, 3), Bytes(100));
  expect_traffic(cache, 400, 0);
  cache.read(chunk(1, 0), Bytes(100));
  expect_traffic(cache, 0, 0);
  cache.read(chunk(1, 1), Bytes(100));
  expect_traffic(cache, 100, 0);
}

TEST(L2Cache, WritesBackADirtyChunkOnlyWhenItLeaves) {
  L2Cache cache(Bytes(200));
  cache.write(chunk(1, 0), Bytes(100));
  expect_traffic(cache, 0, 0);
  cache.read(chunk(2, 0), Bytes(100));
  cache.read(chunk(2, 1), Bytes(100));  // pushes the written chunk out
  expect_traffic(cache, 200, 100);
  cache.read(chunk(1, 0), Bytes(100));  // and it comes back clean
  cache.read(chunk(2, 0), Bytes(100));
  cache.read(chunk(2, 1), Bytes(100));
  expect_traffic(cache, 300, 0);
}

TEST(L2Cache, AConsumerFindsWhatItsProducerWrote) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), Bytes(100));
  cache.take_traffic();  // the producer's kernel ends
  cache.read(chunk(1, 0), Bytes(100));
  expect_traffic(cache, 0, 0);
  EXPECT_EQ(cache.dirty(), Bytes(100));
}

TEST(L2Cache, ReadsOnlyTheMissingPartOfAPartlyWrittenChunk) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), Bytes(30));
  cache.read(chunk(1, 0), Bytes(100));
  expect_traffic(cache, 70, 0);
  cache.flush();
  expect_traffic(cache, 0, 30);
}

TEST(L2Cache, FlushWritesDirtyBytesOnceAndKeepsContents) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), Bytes(100));
  cache.flush();
  cache.flush();
  expect_traffic(cache, 0, 100);
  EXPECT_EQ(cache.resident(1), Bytes(100));
}

TEST(L2Cache, DiscardForgetsOneTensorWithoutWritingIt) {
  L2Cache cache(Bytes(1000));
  cache.write(chunk(1, 0), Bytes(100));
  cache.write(chunk(2, 0), Bytes(40));
  cache.discard(1);
  cache.flush();
  expect_traffic(cache, 0, 40);
  EXPECT_EQ(cache.resident(1), Bytes(0));
  EXPECT_EQ(cache.resident(2), Bytes(40));
}

TEST(L2Cache, AChunkLargerThanTheCacheStreamsThrough) {
  L2Cache cache(Bytes(50));
  cache.write(chunk(1, 0), Bytes(100));
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

// A literal least-recently-used list, newest first, searched from the front.
class ListLru {
 public:
  explicit ListLru(std::int64_t capacity) : capacity_(capacity) {}
  void access(std::uint64_t key, std::int64_t bytes, bool write) {
    Entry entry{key, 0, 0};
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->key != key) continue;
      entry = *it;
      entries_.erase(it);
      break;
    }
    if (!write) read_ += std::max<std::int64_t>(0, bytes - entry.bytes);
    if (write) entry.dirty = std::max(entry.dirty, bytes);
    entry.bytes = std::max(entry.bytes, bytes);
    entries_.push_front(entry);
    while (resident() > capacity_) {
      written_ += entries_.back().dirty;
      entries_.pop_back();
    }
  }
  void discard(std::uint64_t tensor) {
    entries_.remove_if([&](const Entry& e) { return e.key >> 32 == tensor; });
  }
  [[nodiscard]] std::int64_t resident() const {
    std::int64_t sum = 0;
    for (const Entry& e : entries_) sum += e.bytes;
    return sum;
  }
  std::int64_t read_ = 0, written_ = 0;

 private:
  struct Entry {
    std::uint64_t key;
    std::int64_t bytes, dirty;
  };
  std::int64_t capacity_;
  std::list<Entry> entries_;
};

TEST(L2Cache, EqualsALiteralListOnRandomTraces) {
  std::mt19937 random(7);
  for (const std::int64_t capacity : {0, 500, 4000, 20000}) {
    L2Cache cache{Bytes(capacity)};
    ListLru list(capacity);
    std::int64_t read = 0, written = 0;
    for (int step = 0; step < 6000; ++step) {
      const auto tensor = static_cast<std::uint32_t>(random() % 3);
      const auto row = static_cast<std::uint32_t>(random() % 12);
      const auto col = static_cast<std::uint32_t>(random() % 12);
      const auto bytes = static_cast<std::int64_t>(1 + random() % 100);
      const bool write = random() % 3 == 0;
      if (step % 1500 == 1499) {
        cache.discard(tensor);
        list.discard(tensor);
      }
      if (write) {
        cache.write({tensor, row, col}, Bytes(bytes));
      } else {
        cache.read({tensor, row, col}, Bytes(bytes));
      }
      list.access((std::uint64_t{tensor} << 32) | (row << 16) | col, bytes, write);
      const HbmTraffic traffic = cache.take_traffic();
      read += traffic.read.value();
      written += traffic.write.value();
      ASSERT_EQ(read, list.read_) << "capacity " << capacity << " step " << step;
      ASSERT_EQ(written, list.written_) << "capacity " << capacity << " step " << step;
      ASSERT_EQ(cache.resident(), Bytes(list.resident()));
    }
  }
}

TEST(L2Cache, KeepsItsContentsWhenItsTableGrows) {
  // More chunks than the table starts with (2^14): a second pass finds them all.
  constexpr std::uint32_t kChunks = 50000;
  L2Cache cache(Bytes(kChunks * 16));
  for (std::uint32_t i = 0; i < kChunks; ++i) cache.read(chunk(3, i % 250, i / 250), Bytes(16));
  expect_traffic(cache, kChunks * 16, 0);
  for (std::uint32_t i = 0; i < kChunks; ++i) cache.read(chunk(3, i % 250, i / 250), Bytes(16));
  expect_traffic(cache, 0, 0);
}

}  // namespace
}  // namespace fuseline
