// Chunks leave the simulated L2 many at once, later than they must: nobody may see that. A cache
// that is watched lets each leave at once, so it is what the other must equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/kernels/gemm_traffic.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {
namespace {

class Nobody : public L2Watcher {
 public:
  void step_ends(const WalkStep&, const L2Cache&) override {}
};

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  std::int64_t from_to(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(unsigned n) { return random_() % n == 0; }

 private:
  std::mt19937 random_;
};

struct Both {
  explicit Both(Bytes capacity) : late(capacity), at_once(capacity) { at_once.watch(&nobody); }
  Nobody nobody;
  L2Cache late, at_once;

  void expect_equal_contents() {
    std::vector<std::uint32_t> tensors, tensors_at_once;
    EXPECT_EQ(late.resident(), at_once.resident());
    EXPECT_EQ(late.dirty(), at_once.dirty());
    EXPECT_EQ(late.evicted(), at_once.evicted());
    EXPECT_EQ(late.contents(tensors), at_once.contents(tensors_at_once));
    EXPECT_EQ(tensors, tensors_at_once);
  }
};

// Ranges of many chunks, over several pages, of which whole chunks are asked for or parts of them.
void access_at_random(Both& both, Random& random) {
  const CachedMatrix tensors[] = {{0, 3000, 1300, 2}, {1, 64, 9000, 2}, {2, 900, 700, 4}};
  const CachedMatrix& m = tensors[random.from_to(0, 2)];
  const bool down = random.one_in(2);
  const bool whole = !random.one_in(4);
  const auto range = [&](std::int64_t size, std::int64_t most) {
    std::int64_t begin = random.from_to(0, (size - 1) / kChunkEdge) * kChunkEdge;
    std::int64_t end = std::min(size, begin + random.from_to(1, most) * kChunkEdge);
    if (!whole) begin = random.from_to(begin, end - 1);
    if (!whole) end = random.from_to(begin + 1, end);
    return std::pair(begin, end);
  };
  const auto [row, row_end] = range(m.rows, down ? 40 : 2);
  const auto [col, col_end] = range(m.cols, down ? 2 : 40);
  const bool writes = random.one_in(3);
  for (int turn = random.one_in(3) ? 2 : 1; turn > 0; --turn) {
    for (L2Cache* cache : {&both.late, &both.at_once}) {
      if (writes) {
        cache->write(m, row, row_end, col, col_end);
      } else {
        cache->read(m, row, row_end, col, col_end);
      }
    }
  }
}

TEST(L2LateEviction, NobodySeesIt) {
  for (const std::int64_t capacity : {50'000, 600'000, 3'000'000, 9'000'000}) {
    Both both{Bytes(capacity)};
    Random random(3);
    for (int step = 0; step < 2000; ++step) {
      access_at_random(both, random);
      ASSERT_EQ(both.late.read_since_taken(), both.at_once.read_since_taken())
          << "capacity " << capacity << ", step " << step;
      if (random.one_in(200)) {
        both.late.discard(2);
        both.at_once.discard(2);
      }
      if (!random.one_in(60)) continue;
      const HbmTraffic late = both.late.take_traffic(), at_once = both.at_once.take_traffic();
      ASSERT_EQ(late.read, at_once.read) << "capacity " << capacity << ", step " << step;
      ASSERT_EQ(late.write, at_once.write) << "capacity " << capacity << ", step " << step;
    }
    both.expect_equal_contents();
  }
}

TEST(L2LateEviction, GemmsOfRandomShapesMoveTheSameWaveByWave) {
  Random random(5);
  std::int64_t waves = 0;
  for (int turn = 0; turn < 150; ++turn) {
    const std::int64_t step = random.one_in(2) ? 64 : 8;
    const auto size = [&](std::int64_t most) { return step * random.from_to(1, most / step); };
    GemmProblem problem = plain_gemm(size(1500), size(1500), size(3000), 0, 1, 2, 3);
    problem.b.transposed = random.one_in(3);
    if (problem.b.transposed) std::swap(problem.b.matrix.rows, problem.b.matrix.cols);
    GemmTile tile{.m = 64 * random.from_to(1, 3), .n = 64 * random.from_to(1, 4)};
    if (random.one_in(4)) tile.split_k = 2;
    const GemmWalk gemm{problem, tile, random.from_to(4, 60), random.from_to(1, 12),
                        random.one_in(2) ? 8.0 : 0.0};
    Both both{Bytes(random.from_to(100'000, 6'000'000))};
    // Twice, so that the second finds what the first left.
    for (int again = 0; again < 2; ++again) {
      const WalkTraffic late = walk(gemm, both.late), at_once = walk(gemm, both.at_once);
      ASSERT_EQ(late.waves.size(), at_once.waves.size());
      for (std::size_t i = 0; i < late.waves.size(); ++i) {
        ASSERT_EQ(late.waves[i].hbm.read, at_once.waves[i].hbm.read) << turn << ", wave " << i;
        ASSERT_EQ(late.waves[i].hbm.write, at_once.waves[i].hbm.write) << turn << ", wave " << i;
        ASSERT_EQ(late.waves[i].missed, at_once.waves[i].missed) << turn << ", wave " << i;
      }
      ASSERT_EQ(late.hbm.read, at_once.hbm.read);
      waves += std::ssize(late.waves);
    }
    both.expect_equal_contents();
  }
  EXPECT_GT(waves, 1000);
}

}  // namespace
}  // namespace fuseline
