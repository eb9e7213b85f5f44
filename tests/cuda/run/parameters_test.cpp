// Bytes of kernel parameters.
#include "cuda/run/parameters.h"

#include <gtest/gtest.h>

#include <array>

#if FUSELINE_HAS_CUDA

namespace fuseline::cuda {
namespace {

constexpr std::byte kBefore{0xee};

// An array taken by value would be a pointer: its numbers would be missing, and an address there.
TEST(KernelParameters, AnArrayIsPutWithAllOfItsNumbers) {
  std::vector<std::byte> bytes(20, kBefore);
  const std::int32_t numbers[4] = {3, -5, 70'000, 8};
  put(bytes, 4, numbers);
  std::array<std::int32_t, 4> there{};
  std::memcpy(there.data(), bytes.data() + 4, sizeof there);
  EXPECT_EQ(there, (std::array<std::int32_t, 4>{3, -5, 70'000, 8}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes[i], kBefore);
}

struct WithGap {
  std::int8_t first;
  std::int32_t second;
};

TEST(KernelParameters, MembersStandInTheirPlaces) {
  std::vector<std::byte> bytes(sizeof(WithGap), kBefore);
  put(bytes, 0, WithGap{7, 260});
  EXPECT_EQ(bytes[0], std::byte{7});
  std::int32_t second = 0;
  std::memcpy(&second, bytes.data() + offsetof(WithGap, second), sizeof second);
  EXPECT_EQ(second, 260);
#if __has_builtin(__builtin_clear_padding)
  for (std::size_t gap = 1; gap < offsetof(WithGap, second); ++gap)
    EXPECT_EQ(bytes[gap], std::byte{0}) << gap;
#endif
}

}  // namespace
}  // namespace fuseline::cuda

#endif
