#include "sim/gpu/memory_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

std::vector<std::string> names_of(const Gpu& gpu) {
  std::vector<std::string> names;
  for (const GpuMemory& level : memory_levels(gpu)) names.push_back(level.name);
  return names;
}

TEST(MemoryLevels, GoFromTheSmOutwards) {
  Gpu gpu = test_gpu();
  EXPECT_EQ(names_of(gpu),
            (std::vector<std::string>{"registers", "shared memory", "L2", "device memory"}));
  gpu.shared_cache = "package cache";
  gpu.more_memory = {{"die cache", MemoryScope::die, 8, Bytes(4 << 20), BytesPerSecond(3e13)},
                     {"tensor memory", MemoryScope::sm, 132, Bytes(256 << 10), {}}};
  EXPECT_EQ(names_of(gpu),
            (std::vector<std::string>{"registers", "shared memory", "tensor memory", "die cache",
                                      "package cache", "device memory"}));
}

TEST(MemoryLevels, HaveTheNumbersOfTheFields) {
  const Gpu gpu = test_gpu();
  const std::vector<GpuMemory> levels = memory_levels(gpu);
  EXPECT_EQ(levels[1].instances, 132);
  EXPECT_EQ(levels[1].capacity, Bytes(228 << 10));
  EXPECT_DOUBLE_EQ(levels[1].bandwidth.value(), 128 * 132 * 1.98e9);
  EXPECT_EQ(levels[2].capacity, gpu.l2_capacity);
  EXPECT_EQ(levels[3].bandwidth, gpu.hbm_bandwidth);
}

// What the formulas are given and what the lists show cannot differ.
TEST(MemoryLevels, OfEveryShippedGpuAreOrdered) {
  for (const std::string& name : gpu_names()) {
    const std::vector<GpuMemory> levels = memory_levels(load_gpu(name));
    EXPECT_TRUE(
        std::is_sorted(levels.begin(), levels.end(),
                       [](const GpuMemory& a, const GpuMemory& b) { return a.scope < b.scope; }))
        << name;
    for (const GpuMemory& level : levels) EXPECT_GE(level.instances, 1) << name;
  }
}

TEST(MemoryLevels, DataCentreBlackwellHasTensorMemory) {
  const std::vector<GpuMemory> levels = memory_levels(load_gpu("b200"));
  const auto found = std::find_if(levels.begin(), levels.end(),
                                  [](const GpuMemory& m) { return m.name == "tensor memory"; });
  ASSERT_NE(found, levels.end());
  EXPECT_EQ(found->scope, MemoryScope::sm);
  EXPECT_EQ(found->instances, 148);
  EXPECT_EQ(found->capacity, Bytes(256 << 10));
}

}  // namespace
}  // namespace fuseline
