#include "cuda/compile/cubin_cache.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

namespace fs = std::filesystem;

class CubinCacheFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder =
        fs::path(testing::TempDir()) /
        (std::string("cubins_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  static std::vector<char> code(std::size_t size, char value) {
    return std::vector<char>(size, value);
  }

  fs::path folder;
};

TEST_F(CubinCacheFiles, GivesBackWhatWasStored) {
  const CubinCache cache(folder, Bytes(1 << 20));
  EXPECT_FALSE(cache.find("a"));
  cache.store("a", code(100, 'x'));
  cache.store("b", code(50, '\0'));
  EXPECT_EQ(cache.find("a"), code(100, 'x'));
  EXPECT_EQ(cache.find("b"), code(50, '\0'));
}

TEST_F(CubinCacheFiles, ADamagedFileCountsAsAbsent) {
  const CubinCache cache(folder, Bytes(1 << 20));
  cache.store("a", code(100, 'x'));
  const fs::path file = cache.file_of("a");
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(-1, std::ios::end);
    out.put('y');
  }
  EXPECT_FALSE(cache.find("a"));
  fs::resize_file(file, 10);
  EXPECT_FALSE(cache.find("a"));
  fs::resize_file(file, 0);
  EXPECT_FALSE(cache.find("a"));
  cache.store("a", code(100, 'z'));
  EXPECT_EQ(cache.find("a"), code(100, 'z'));
}

TEST_F(CubinCacheFiles, AnotherKeysFileCountsAsAbsent) {
  const CubinCache cache(folder, Bytes(1 << 20));
  cache.store("a", code(100, 'x'));
  fs::copy_file(cache.file_of("a"), cache.file_of("b"));
  EXPECT_FALSE(cache.find("b"));
}

TEST_F(CubinCacheFiles, TheOnesUsedLongestAgoGoFirst) {
  const CubinCache cache(folder, Bytes(3500));
  const auto now = fs::file_time_type::clock::now();
  cache.store("old", code(1000, 'o'));
  cache.store("used", code(1000, 'u'));
  cache.store("new", code(1000, 'n'));
  fs::last_write_time(cache.file_of("old"), now - std::chrono::hours(2));
  fs::last_write_time(cache.file_of("used"), now - std::chrono::hours(3));
  fs::last_write_time(cache.file_of("new"), now - std::chrono::hours(1));
  ASSERT_TRUE(cache.find("used"));  // now the newest
  cache.store("newest", code(1000, 'w'));
  EXPECT_FALSE(cache.find("old"));
  EXPECT_TRUE(cache.find("used"));
  EXPECT_TRUE(cache.find("new"));
  EXPECT_TRUE(cache.find("newest"));
}

TEST_F(CubinCacheFiles, AFolderThatCannotBeMadeIsNoError) {
  std::ofstream(folder.string()) << "a file, not a folder";
  const CubinCache cache(folder, Bytes(3500));
  cache.store("a", code(10, 'x'));
  EXPECT_FALSE(cache.find("a"));
}

}  // namespace
}  // namespace fuseline::cuda
