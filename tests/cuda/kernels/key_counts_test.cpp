// The shared memory in which a thread block counts keys: device code that runs on the host too.
#include "cuda/kernels/stream/key_counts.cuh"

#include <gtest/gtest.h>

#include "model/primitives/sort_places.h"

namespace fuseline {
namespace {

using namespace gpu::stream;

template <int values>
constexpr bool all_are(const KeyCounts<values>& counts, int number) {
  for (int v = 0; v < values; ++v) {
    if (counts.ahead[v] != number || counts.others[v] != number) return false;
    for (const auto& warp : counts.of_warp)
      if (warp[v] != number) return false;
  }
  return true;
}

// Whether the block's threads together leave nothing of what was there before.
template <int values>
constexpr bool is_cleared() {
  KeyCounts<values> counts{};
  for (int v = 0; v < values; ++v) {
    counts.ahead[v] = counts.others[v] = 7;
    for (auto& warp : counts.of_warp) warp[v] = 7;
  }
  if (!all_are(counts, 7)) return false;
  for (int thread = 0; thread < counting_threads; ++thread) counts.clear(thread);
  return all_are(counts, 0);
}

// A constant expression may not reach past the end of an array, so this does not compile where
// clear() does.
TEST(KeyCounts, AreClearedWithinTheirArrays) {
  constexpr bool few = is_cleared<5>();
  constexpr bool of_lanes = is_cleared<33>();
  constexpr bool of_threads = is_cleared<gpu::stream::counting_threads + 1>();
  constexpr bool most = is_cleared<SortPlaces::kMostValues>();
  EXPECT_TRUE(few);
  EXPECT_TRUE(of_lanes);
  EXPECT_TRUE(of_threads);
  EXPECT_TRUE(most);
}

// The plan, the launch and the simulator take the number from the primitive.
TEST(KeyCounts, AreThoseOfTheThreadsThatAreLaunched) {
  EXPECT_EQ(counting_threads, SortPlaces::kCountingThreads);
  constexpr std::size_t shared_without_asking = 48 * 1024;
  EXPECT_LE(sizeof(KeyCounts<SortPlaces::kMostValues>), shared_without_asking);
}

}  // namespace
}  // namespace fuseline
