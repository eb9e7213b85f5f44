// The L2 as sets that are not loaded alike.
#include "sim/kernels/remembering_l2.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

constexpr Bytes kCapacity(64 * 8192);  // 64 chunks

WalkKey key_of(const CachedMatrix& m) {
  WalkKey key;
  key.matrix(m);
  return key;
}

WalkTraffic read_all(RememberingL2& l2, const CachedMatrix& m) {
  return l2.walk(key_of(m), [&](L2Cache& cache) {
    cache.read(m, 0, m.rows, 0, m.cols);
    return WalkTraffic{{}, cache.take_traffic(), {}, 0.3};
  });
}

CachedMatrix column_of(std::uint32_t tensor, std::int64_t chunks) {
  return {tensor, chunks * kChunkEdge, kChunkEdge, 2};
}

// What a sharp cache keeps as a whole, or not at all, sets that are not loaded alike keep in part.
TEST(RememberingL2, LosesAThirdWhereOnlyTheFullestSetsAreTooSmall) {
  WalkMemo memo;
  const CachedMatrix reread = column_of(1, 60);
  RememberingL2 sharp(kCapacity, 0, &memo), spread(kCapacity, 0.25, &memo);
  for (RememberingL2* l2 : {&sharp, &spread})
    EXPECT_EQ(read_all(*l2, reread).hbm.read, Bytes(60 * 8192));
  EXPECT_EQ(read_all(sharp, reread).hbm.read, Bytes());
  EXPECT_EQ(read_all(spread, reread).hbm.read, Bytes(60 * 8192 / 3));
  EXPECT_EQ(spread.take_missed(1), Bytes(60 * 8192 + 60 * 8192 / 3));
}

TEST(RememberingL2, KeepsAThirdWhereOnlyTheEmptiestSetsAreLargeEnough) {
  WalkMemo memo;
  const CachedMatrix reread = column_of(1, 70);
  RememberingL2 spread(kCapacity, 0.25, &memo);
  read_all(spread, reread);
  EXPECT_EQ(read_all(spread, reread).hbm.read, Bytes(2 * 70 * 8192 / 3 + 1));
  EXPECT_EQ(spread.resident(1), Bytes((48 + 64 + 70) * 8192 / 3 + 1));
}

TEST(RememberingL2, HoldsTheMeanOfWhatIsDirty) {
  RememberingL2 spread(kCapacity, 0.25, nullptr);
  const CachedMatrix m = column_of(1, 100);
  const WalkTraffic written = spread.walk(key_of(m), [&](L2Cache& cache) {
    cache.write(m, 0, m.rows, 0, m.cols);
    return WalkTraffic{{}, cache.take_traffic(), {}, 0};
  });
  EXPECT_EQ(spread.dirty(1), Bytes((48 + 64 + 80) * 8192 / 3));
  EXPECT_EQ(written.hbm.write + spread.dirty(1), Bytes(100 * 8192));
}

// Of waves too: each keeps its blocks and steps, and its bytes are the mean.
TEST(RememberingL2, MeansAreOfEachWave) {
  const auto moved = [](std::int64_t read, double found) {
    GemmWave wave;
    wave.blocks = 7;
    wave.hbm.read = Bytes(read);
    wave.missed = Bytes(read / 2);
    wave.found = found;
    WalkTraffic traffic;
    traffic.waves = {GemmWave{}, wave};
    traffic.most_missed = found;
    return traffic;
  };
  const WalkTraffic mean = mean_of({moved(100, 0.5), moved(400, 1), moved(700, 0)});
  ASSERT_EQ(mean.waves.size(), 2U);
  EXPECT_EQ(mean.waves[1].blocks, 7);
  EXPECT_EQ(mean.waves[1].hbm.read, Bytes(400));
  EXPECT_EQ(mean.waves[1].missed, Bytes(200));
  EXPECT_DOUBLE_EQ(mean.waves[1].found, 0.5);
  EXPECT_DOUBLE_EQ(mean.most_missed, 0.5);
}

// Where one part's contents depend on what was there before, all are empty: a refill is whole or
// not at all.
TEST(RememberingL2, ARefillIsOfAllPartsOrOfNone) {
  WalkMemo memo;
  const CachedMatrix m = column_of(1, 70);  // fills the first two parts alone
  RememberingL2 spread(kCapacity, 0.25, &memo);
  const auto walk_once = [&](L2Cache& cache) {
    cache.write(m, 0, m.rows, 0, m.cols);
    cache.write(m, 0, m.rows, 0, m.cols);
    return WalkTraffic{};
  };
  EXPECT_FALSE(spread.refill(key_of(m), walk_once));
  EXPECT_EQ(spread.resident(1), Bytes());
}

}  // namespace
}  // namespace fuseline
