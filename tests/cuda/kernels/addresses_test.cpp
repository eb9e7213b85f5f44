// Address functions of the kernels, checked on the CPU: swizzles against bank conflicts, the order
// of tiles, and the order of the ring.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cuda/kernels/fragment.cuh"
#include "cuda/kernels/raster.cuh"
#include "cuda/kernels/sm90/ring_order.cuh"
#include "cuda/kernels/sm90/store_buffer.cuh"
#include "cuda/kernels/swizzle.cuh"

namespace fuseline::gpu {
namespace {

// The most 16-byte accesses of eight lanes that fall on the same four banks: 1 = no conflict.
template <class Address>
int worst_bank_use(Address&& address) {
  std::array<int, 8> uses{};
  for (u32 lane = 0; lane < 8; ++lane) ++uses[address(lane) / 16 % 8];
  return *std::max_element(uses.begin(), uses.end());
}

template <int row_bytes>
void expect_permutation_without_conflicts() {
  constexpr u32 chunks = row_bytes / 16;
  std::set<u32> places;
  for (u32 row = 0; row < 16; ++row)
    for (u32 chunk = 0; chunk < chunks; ++chunk) {
      const u32 at = swizzle<row_bytes>(row, chunk);
      EXPECT_EQ(at / row_bytes, row) << "a chunk leaves its row";
      places.insert(at);
    }
  EXPECT_EQ(places.size(), 16 * chunks);
  // ldmatrix and stmatrix: eight rows at one chunk at a time.
  for (u32 first = 0; first < 16; first += 8)
    for (u32 chunk = 0; chunk < chunks; ++chunk)
      EXPECT_EQ(worst_bank_use([&](u32 lane) { return swizzle<row_bytes>(first + lane, chunk); }),
                1);
}

TEST(Swizzle, EightRowsAtOneChunkHitAllBanks) {
  expect_permutation_without_conflicts<128>();
  expect_permutation_without_conflicts<64>();
  expect_permutation_without_conflicts<32>();
}

TEST(Swizzle, WithoutItEightRowsOf128BytesConflict) {
  EXPECT_EQ(worst_bank_use([](u32 lane) { return lane * 128; }), 8);
}

// wgmma leaves columns lane / 4 and lane / 4 + 8 of a warp's 16 in a lane, and of each eight rows
// two.
TEST(TurnedPlace, EachNumberIsReadByTheThreadThatTheEpilogueWantsItIn) {
  constexpr u32 start = 3 * 128;  // of the buffer
  for (int half = 0; half < 2; ++half) {
    std::map<u32, std::pair<int, int>> buffer;  // address → row and column of the strip
    for (int warp = 0; warp < 4; ++warp)
      for (int lane = 0; lane < 32; ++lane)
        for (int eight = 0; eight < 4; ++eight)
          for (int i = 0; i < 4; ++i)
            buffer[turned_write_from(start + turned_write(warp, lane), eight, i)] = {
                8 * (2 * eight + half) + lane % 4 * 2 + i % 2, 16 * warp + lane / 4 + 8 * (i / 2)};
    ASSERT_EQ(buffer.size(), 32U * 64U) << "two numbers in one place";
    EXPECT_EQ(buffer.begin()->first, start);
    EXPECT_EQ(buffer.rbegin()->first, start + 4 * (32 * 64 - 1));
    for (int warp = 0; warp < 4; ++warp)
      for (int lane = 0; lane < 32; ++lane)
        for (int group = 0; group < 8; ++group)
          for (int e = 0; e < 2; ++e) {
            const u32 at =
                turned_read_from(start + turned_read(warp, lane), group) + 4 * static_cast<u32>(e);
            ASSERT_TRUE(buffer.contains(at)) << at;
            EXPECT_EQ(buffer.at(at), std::pair(16 * warp + fragment_row(lane, half),
                                               fragment_col(2, lane, group, e)));
          }
  }
}

// A warp writes 32 numbers of 4 bytes at once, and half a warp reads 16 pairs.
TEST(TurnedPlace, NeitherWritesNorReadsMeetInABank) {
  for (int warp = 0; warp < 4; ++warp) {
    for (int eight = 0; eight < 4; ++eight)
      for (int i = 0; i < 4; ++i) {
        std::set<u32> banks;
        for (int lane = 0; lane < 32; ++lane)
          banks.insert(turned_write_from(turned_write(warp, lane), eight, i) / 4 % 32);
        EXPECT_EQ(banks.size(), 32U) << "written: eight " << eight;
      }
    for (int group = 0; group < 8; ++group)
      for (int first = 0; first < 32; first += 16) {
        std::set<u32> banks;
        for (int lane = first; lane < first + 16; ++lane)
          for (u32 e = 0; e < 2; ++e)
            banks.insert((turned_read_from(turned_read(warp, lane), group) / 4 + e) % 32);
        EXPECT_EQ(banks.size(), 32U) << "read: columns of group " << group;
      }
  }
}

// A store buffer holds rows of other lengths one after the other, and its warps do not wait for
// each other: none may write a byte that another one has.
template <int row_bytes>
std::set<u32> bytes_of_warp(u32 warp) {
  std::set<u32> bytes;
  for (u32 row = 0; row < 16; ++row)
    for (u32 chunk = 0; chunk < row_bytes / 16; ++chunk)
      bytes.insert(rows_in_buffer(16 * warp) + swizzle<row_bytes>(row, chunk));
  return bytes;
}
TEST(StoreBuffer, WarpsHaveBytesOfTheirOwnWhateverTheRowsLengths) {
  std::map<u32, u32> owner;
  const auto claim = [&](u32 warp, const std::set<u32>& bytes) {
    for (const u32 byte : bytes) {
      EXPECT_LE(byte + 16, static_cast<u32>(store_buffer_bytes));
      EXPECT_EQ(owner.try_emplace(byte, warp).first->second, warp) << byte;
    }
  };
  for (u32 warp = 0; warp < 4; ++warp) {
    claim(warp, bytes_of_warp<128>(warp));
    claim(warp, bytes_of_warp<64>(warp));
    claim(warp, bytes_of_warp<32>(warp));
  }
  EXPECT_EQ(owner.size() * 16, static_cast<std::size_t>(store_buffer_bytes));
}
// What all warps write together, and each stores a part of, lies where the parts do.
TEST(StoreBuffer, RowsOf128BytesLieAsInOneBox) {
  for (u32 row = 0; row < 64; ++row)
    for (u32 chunk = 0; chunk < 8; ++chunk)
      EXPECT_EQ(rows_in_buffer(row / 16 * 16) + swizzle<128>(row % 16, chunk),
                swizzle<128>(row, chunk));
}

TEST(Swizzle, FollowsTheHardwaresRule) {
  // 128-byte mode: address bits 4 to 6 are exchanged by bits 7 to 9.
  for (u32 row = 0; row < 32; ++row)
    for (u32 chunk = 0; chunk < 8; ++chunk) {
      const u32 plain = row * 128 + chunk * 16;
      EXPECT_EQ(swizzle<128>(row, chunk), plain ^ ((plain >> 7 & 7) << 4));
    }
  for (u32 row = 0; row < 32; ++row)
    for (u32 chunk = 0; chunk < 4; ++chunk) {
      const u32 plain = row * 64 + chunk * 16;
      EXPECT_EQ(swizzle<64>(row, chunk), plain ^ ((plain >> 7 & 3) << 4));
    }
}

TEST(Raster, VisitsEveryTileOnce) {
  for (const int tiles_m : {1, 3, 8, 17})
    for (const int tiles_n : {1, 2, 13})
      for (const int group : {1, 4, 8}) {
        std::set<std::pair<int, int>> seen;
        for (int t = 0; t < tiles_m * tiles_n; ++t) {
          const TilePlace p = grouped_tile(t, tiles_m, tiles_n, group);
          EXPECT_TRUE(p.m >= 0 && p.m < tiles_m && p.n >= 0 && p.n < tiles_n);
          seen.insert({p.m, p.n});
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(tiles_m * tiles_n));
      }
}

TEST(Raster, AWaveIsNearlySquare) {
  // 64 tiles of a 32 × 32 grid in groups of 8: they touch 8 rows and 8 columns.
  std::set<int> rows;
  std::set<int> cols;
  for (int t = 64; t < 128; ++t) {
    const TilePlace p = grouped_tile(t, 32, 32, 8);
    rows.insert(p.m);
    cols.insert(p.n);
  }
  EXPECT_EQ(rows.size() + cols.size(), 16U);
}

TEST(Raster, GroupsMeetAtTheSameColumn) {
  const TilePlace last = grouped_tile(8 * 5 - 1, 16, 5, 8);
  const TilePlace next = grouped_tile(8 * 5, 16, 5, 8);
  EXPECT_EQ(last.n, next.n);
}

TEST(RingPlace, JumpsLikeItWalks) {
  RingPlace<6> walked;
  for (int entries = 0; entries < 40; ++entries) {
    const RingPlace<6> jumped = RingPlace<6>{}.after(entries);
    EXPECT_EQ(jumped.stage, walked.stage);
    EXPECT_EQ(jumped.parity, walked.parity);
    walked.next();
  }
}

// What the ring holds in ping-pong: the producer's order, as consumers must find it.
TEST(PingPongRing, SlabsAreWhereTheConsumersLook) {
  for (const int k_steps : {0, 1, 2, 3, 9})
    for (const int slabs : {1, 2, 4}) {
      std::vector<int> sent;  // -1 for a step, else the slab
      for (int k = 0; k < k_steps; ++k) {
        sent.push_back(-1);
        if (k < slabs) sent.push_back(k);
      }
      for (int s = k_steps; s < slabs; ++s) sent.push_back(s);
      ASSERT_EQ(sent.size(), static_cast<std::size_t>(k_steps + slabs));
      for (int s = 0; s < slabs; ++s)
        EXPECT_EQ(sent[static_cast<std::size_t>(pingpong_slab_entry(s, k_steps))], s);
    }
}

}  // namespace
}  // namespace fuseline::gpu
