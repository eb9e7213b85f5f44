// Who has what in Hopper's kernel of codes for few rows (columns_order.cuh), and its ring: in
// random orders of arrival every box of K is taken once by each of its warps, and none is
// overwritten or taken for another.
#include "cuda/kernels/sm90/columns_order.cuh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "sim/kernels/codes_columns.h"

namespace fuseline {
namespace {

using gpu::u32;

// An mbarrier as its waiters see it: it knows a phase from the one before it alone.
class Barrier {
 public:
  explicit Barrier(int arrivals) : expected_(arrivals), left_(arrivals) {}
  // False: more arrivals than the phase has.
  bool arrive() {
    if (left_ == 0) return false;
    if (--left_ == 0) {
      phase_ ^= 1;
      left_ = expected_;
    }
    return true;
  }
  [[nodiscard]] bool done(int parity) const { return phase_ != parity; }

 private:
  int expected_, left_, phase_ = 0;
};

// The ring of a thread block. A step is one thing that the producer, the copy engine or a warp
// does.
class Ring {
 public:
  Ring(int boxes, int stages, int row_warps, unsigned seed)
      : boxes_(boxes),
        stages_(stages),
        k_warps_(static_cast<int>(kColumnsConsumers) / row_warps),
        full_(static_cast<std::size_t>(stages), Barrier(1)),
        empty_(static_cast<std::size_t>(stages), Barrier(gpu::slices_of_box * row_warps)),
        held_(static_cast<std::size_t>(stages), -1),
        random_(seed) {
    for (int w = 0; w < kColumnsConsumers; ++w) {
      const gpu::SlicesOfWarp s = gpu::slices_of_warp(w % k_warps_, k_warps_);
      warps_.push_back({s, s.first_box, s.first_box % stages, 0});
    }
  }

  // Whether all boxes were taken, each as it should be.
  bool run() {
    const int row_warps = static_cast<int>(kColumnsConsumers) / k_warps_;
    const auto all = static_cast<std::size_t>(boxes_ * gpu::slices_of_box * row_warps);
    const int most_steps = 400 * (boxes_ + 16) * static_cast<int>(kColumnsConsumers);
    for (int i = 0; i < most_steps && right_ && taken_.size() < all; ++i) step();
    return right_ && taken_.size() == all;
  }

 private:
  struct Warp {
    gpu::SlicesOfWarp slices;
    int box, stage, parity;
  };
  int any(int count) { return std::uniform_int_distribution(0, count - 1)(random_); }

  void step() {
    const int who = any(static_cast<int>(kColumnsConsumers) + 2);
    if (who == kColumnsConsumers)
      ask();
    else if (who > kColumnsConsumers)
      deliver();
    else
      take(who);
  }
  void ask() {
    if (asked_ == boxes_) return;
    if (asked_ >= stages_) {
      if (!empty_[static_cast<std::size_t>(asked_ % stages_)].done(asked_ / stages_ % 2 ^ 1))
        return;
    }
    under_way_.push_back(asked_++);
  }
  void deliver() {
    if (under_way_.empty()) return;
    const auto it = under_way_.begin() + any(static_cast<int>(under_way_.size()));
    const auto stage = static_cast<std::size_t>(*it % stages_);
    held_[stage] = *it;
    under_way_.erase(it);
    right_ = right_ && full_[stage].arrive();
  }
  void take(int number) {
    Warp& w = warps_[static_cast<std::size_t>(number)];
    const auto stage = static_cast<std::size_t>(w.stage);
    if (w.box >= boxes_ || !full_[stage].done(w.parity)) return;
    const int slice = gpu::slices_of_box * w.box + w.slices.slice;
    right_ = right_ && held_[stage] == w.box && taken_.insert({slice, number / k_warps_}).second &&
             empty_[stage].arrive();
    w.box += w.slices.step;
    w.stage += w.slices.step;
    if (w.stage >= stages_) {
      w.stage -= stages_;
      w.parity ^= 1;
    }
  }

  int boxes_, stages_, k_warps_;
  std::vector<Barrier> full_, empty_;
  std::vector<int> held_;  // box of a stage
  std::vector<Warp> warps_;
  std::mt19937 random_;
  int asked_ = 0;
  std::vector<int> under_way_;
  std::set<std::pair<int, int>> taken_;  // slice, warp along the columns
  bool right_ = true;
};

std::vector<CodesColumns> forms() {
  std::vector<CodesColumns> all;
  for (const char* weights : {"int8", "fp8", "int4", "int4:0", "int4:256"})
    for (const std::int64_t m : {1, 2, 4, 8})
      for (const std::int64_t n : {4096, 6144, 12288, 22016, 28672, 32000, 128256})
        for (const std::int64_t k : {1032, 4096, 8192, 11008, 14336})
          if (const auto form =
                  codes_columns({m, n, k, parse_stored_weight(weights, "--weights", "bf16")}, {}))
            all.push_back(*form);
  return all;
}

TEST(CodesColumnsRing, TakesEveryBoxOnceInItsOrder) {
  std::set<std::vector<std::int64_t>> tried;
  unsigned seed = 1;
  int in_rounds = 0;
  for (const CodesColumns& f : forms()) {
    if (!tried.insert({f.boxes, f.stages, f.row_warps}).second) continue;
    EXPECT_TRUE(f.stages == f.boxes || f.stages % f.box_step() == 0);
    in_rounds += f.stages < f.boxes ? 1 : 0;
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(Ring(static_cast<int>(f.boxes), static_cast<int>(f.stages),
                       static_cast<int>(f.row_warps), seed++)
                      .run())
          << fmt::format("{} boxes, {} stages, {} warps along the columns", f.boxes, f.stages,
                         f.row_warps);
  }
  EXPECT_GT(in_rounds, 10);
}

// Whoever leaves a round of a stage out takes the phase before for its own.
TEST(CodesColumnsRing, GoesWrongWithStagesThatAreNoMultipleOfTheStep) {
  int wrong = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) wrong += Ring(86, 10, 1, seed).run() ? 0 : 1;
  EXPECT_GT(wrong, 0);
}

TEST(CodesColumnsOrder, EightLanesReadEightBanks) {
  for (int slice = 0; slice < gpu::slices_of_box; ++slice)
    for (int first = 0; first < 32; first += 8) {
      std::set<u32> banks;
      for (int lane = first; lane < first + 8; ++lane)
        banks.insert(gpu::lane_of_box(lane, slice) / 16 % 8);
      EXPECT_EQ(banks.size(), 8U);
    }
}

TEST(CodesColumnsOrder, LanesOfAWarpHaveEightRowsOfABox) {
  std::set<u32> places;
  for (int slice = 0; slice < gpu::slices_of_box; ++slice)
    for (int lane = 0; lane < 32; ++lane) places.insert(gpu::lane_of_box(lane, slice));
  EXPECT_EQ(places.size(), 64U);
  EXPECT_EQ(*places.rbegin(), 1024U - 16);
}

template <int chunk, int rows>
void check_places() {
  std::set<u32> all;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < 4 * chunk; column += 8) {
      const u32 place = gpu::place_of_x<chunk, rows>(row, column);
      all.insert(place);
      // Lane 4 row + q reads eight e of its part of a slice beside the other lanes'.
      const int slice = column / chunk, q = column % chunk / (chunk / 4);
      const int e = column % (chunk / 4) / 8;
      EXPECT_EQ(place,
                static_cast<u32>((slice * (chunk / 32) + e) * rows * 64 + (4 * row + q) * 16));
    }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(rows * 4 * chunk / 8));
}
TEST(CodesColumnsOrder, RowsOfALieWhereLanesReadThem) {
  check_places<64, 1>();
  check_places<64, 8>();
  check_places<128, 2>();
  check_places<128, 4>();
}

TEST(CodesColumnsOrder, StripsHaveEveryColumnOfABlock) {
  for (int columns = 32; columns <= 256; columns += 16) {
    std::set<int> all;
    for (int strip = 0; strip < (columns + 31) / 32; ++strip)
      for (int i = 0; i < 32; ++i) all.insert(gpu::first_of_strip(strip, columns) + i);
    EXPECT_EQ(static_cast<int>(all.size()), columns);
    EXPECT_EQ(*all.begin(), 0);
    EXPECT_EQ(*all.rbegin(), columns - 1);
  }
}

}  // namespace
}  // namespace fuseline
