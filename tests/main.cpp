// Starts every test program. Each process writes in a folder of its own, because ctest runs the
// tests of a program as processes beside one another, and two of them may name a file alike.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace fuseline {
namespace {

class OwnFolder : public testing::Environment {
 public:
  void SetUp() override {
    const std::filesystem::path shared = testing::TempDir();
    folder_ = shared / std::to_string(getpid());
    std::filesystem::remove_all(folder_);  // of a process that crashed and had this number
    std::filesystem::create_directories(folder_);
    // What later runs may find again is written there (tests/cuda/emit/compile_support.h).
    ASSERT_EQ(setenv("FUSELINE_TEST_STORE", shared.c_str(), 1), 0);
    ASSERT_EQ(setenv("TEST_TMPDIR", (folder_ / "").c_str(), 1), 0);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace
}  // namespace fuseline

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::AddGlobalTestEnvironment(new fuseline::OwnFolder);  // googletest deletes it
  return RUN_ALL_TESTS();
}
