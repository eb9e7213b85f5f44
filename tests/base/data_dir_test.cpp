#include "base/data_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

class DataDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() /
            ("fuseline-" + std::string(test->name()) + "-" + std::to_string(::getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  // Makes a folder that counts as data and returns it.
  fs::path make_data(const fs::path& below_root) const {
    fs::create_directories(root_ / below_root / "models");
    fs::create_directories(root_ / below_root / "gpus");
    return root_ / below_root;
  }

  fs::path root_;
};

TEST_F(DataDirTest, EnvironmentWinsOverEverything) {
  const fs::path chosen = make_data("chosen");
  make_data("tree/scenarios");
  const fs::path baked = make_data("baked");
  EXPECT_EQ(find_data_dir(chosen, root_ / "tree/build/dev/bin/fuseline", baked), chosen);
}

TEST_F(DataDirTest, EnvironmentWithoutDataIsTheUsersMistake) {
  const fs::path baked = make_data("baked");
  try {
    find_data_dir(root_ / "nothing-here", fs::path(), baked);
    FAIL() << "accepted a folder without data";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "FUSELINE_DATA");
    EXPECT_EQ(error.problem().value, (root_ / "nothing-here").string());
  }
}

TEST_F(DataDirTest, AnInstalledTreeHasItsDataInShare) {
  const fs::path installed = make_data("usr/share/fuseline/scenarios");
  const fs::path baked = make_data("baked");
  EXPECT_EQ(find_data_dir(std::nullopt, root_ / "usr/bin/fuseline", baked), installed);
  const fs::path beside = make_data("usr/scenarios");
  EXPECT_EQ(find_data_dir(std::nullopt, root_ / "usr/bin/fuseline", baked), beside);
}

TEST_F(DataDirTest, FoldersAboveTheExecutableWinOverTheBuildTree) {
  const fs::path beside = make_data("tree/scenarios");
  const fs::path baked = make_data("baked");
  EXPECT_EQ(find_data_dir(std::nullopt, root_ / "tree/build/dev/bin/fuseline", baked), beside);
}

TEST_F(DataDirTest, AScenariosFolderWithoutModelsIsPassedOver) {
  fs::create_directories(root_ / "tree/build/scenarios/gpus");
  const fs::path beside = make_data("tree/scenarios");
  EXPECT_EQ(find_data_dir(std::nullopt, root_ / "tree/build/fuseline", fs::path()), beside);
}

TEST_F(DataDirTest, TheBuildTreeIsTheLastResort) {
  const fs::path baked = make_data("baked");
  EXPECT_EQ(find_data_dir(std::nullopt, root_ / "elsewhere/fuseline", baked), baked);
}

TEST_F(DataDirTest, NothingFoundIsMissingNotWrong) {
  EXPECT_THROW(find_data_dir(std::nullopt, root_ / "elsewhere/fuseline", root_ / "gone"),
               MissingError);
}

TEST(DataDir, ThisProgramFindsItsData) {
  EXPECT_TRUE(fs::exists(data_dir() / "models" / "llama2-7b.toml"));
  EXPECT_TRUE(fs::exists(data_dir() / "gpus" / "h200.toml"));
}

}  // namespace
}  // namespace fuseline
