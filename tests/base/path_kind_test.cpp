#include "base/path_kind.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/data_files.h"
#include "base/error.h"
#include "base/temporary_folder.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

// Root may read everything; while one of these lives, this process may not.
class WithoutRights {
 public:
  WithoutRights() : was_root_(geteuid() == 0) {
    if (was_root_ && seteuid(65534) != 0) was_root_ = false;
  }
  ~WithoutRights() {
    if (was_root_ && seteuid(0) != 0) std::abort();
  }
  WithoutRights(const WithoutRights&) = delete;
  WithoutRights& operator=(const WithoutRights&) = delete;

 private:
  bool was_root_;
};

class PathKindTest : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(folder_.path(), fs::perms(0755)); }
  fs::path make(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const InputError& error) {
      return error.problem().message;
    }
    return "accepted";
  }

  TemporaryFolder folder_{"path-kind-test"};
};

TEST_F(PathKindTest, IsOfWhatTheLinksLeadTo) {
  make("f", "x");
  ASSERT_EQ(mkfifo((folder_.path() / "p").c_str(), 0666), 0);
  fs::create_symlink("f", folder_.path() / "link");
  fs::create_symlink("nothing", folder_.path() / "dangling");
  EXPECT_EQ(kind_of_path(folder_.path()), PathKind::folder);
  EXPECT_EQ(kind_of_path(folder_.path() / "f"), PathKind::regular);
  EXPECT_EQ(kind_of_path(folder_.path() / "link"), PathKind::regular);
  EXPECT_EQ(kind_of_path(folder_.path() / "dangling"), PathKind::missing);
  EXPECT_EQ(kind_of_path(folder_.path() / "f" / "g"), PathKind::missing);
  EXPECT_EQ(kind_of_path(folder_.path() / "p"), PathKind::pipe);
  EXPECT_EQ(kind_of_path("/dev/null"), PathKind::device);
  EXPECT_EQ(end_of_links(folder_.path() / "dangling"), folder_.path() / "nothing");
}

TEST_F(PathKindTest, WhatCannotBeToldSaysWhy) {
  fs::create_symlink("b", folder_.path() / "a");
  fs::create_symlink("a", folder_.path() / "b");
  EXPECT_EQ(refusal([&] { kind_of_path(folder_.path() / "a"); }),
            "cannot be read: Too many levels of symbolic links");
  EXPECT_EQ(refusal([&] { kind_of_path(std::string(300, 'n')); }),
            "cannot be read: File name too long");
}

TEST_F(PathKindTest, NoPermissionIsNotNoSuchFile) {
  fs::create_directory(folder_.path() / "closed");
  make("closed/f.toml", "x = 1");
  make("unreadable.toml", "x = 1");
  fs::permissions(folder_.path() / "closed", fs::perms::none);
  fs::permissions(folder_.path() / "unreadable.toml", fs::perms::none);
  {
    const WithoutRights guard;
    const std::string denied = "cannot be read: Permission denied";
    const fs::path inside = folder_.path() / "closed" / "f.toml";
    EXPECT_EQ(refusal([&] { kind_of_path(inside); }), denied);
    EXPECT_EQ(refusal([&] { read_input_file(inside); }), denied);
    EXPECT_EQ(refusal([&] { find_data_file(inside.string(), {"model", "models"}); }), denied);
    EXPECT_EQ(refusal([&] { folder_entries(folder_.path() / "closed"); }), denied);
    EXPECT_EQ(refusal([&] { read_input_file(folder_.path() / "unreadable.toml"); }), denied);
  }
  fs::permissions(folder_.path() / "closed", fs::perms::owner_all);
}

TEST_F(PathKindTest, EntriesOfAFolderAreSorted) {
  make("b", "");
  make("a", "");
  EXPECT_EQ(folder_entries(folder_.path()),
            (std::vector<fs::path>{folder_.path() / "a", folder_.path() / "b"}));
  EXPECT_EQ(refusal([&] { folder_entries(folder_.path() / "none"); }),
            "cannot be read: No such file or directory");
}

TEST_F(PathKindTest, KnowsTheNamesOfOurOwnDescriptors) {
  const fs::path path = make("f", "x");
  const int file = open(path.c_str(), O_RDONLY);
  const std::string number = std::to_string(file);
  EXPECT_EQ(own_descriptor("/dev/fd/" + number), file);
  EXPECT_EQ(own_descriptor("/proc/self/fd/" + number), file);
  fs::create_symlink("/dev/fd/" + number, folder_.path() / "link");
  EXPECT_EQ(own_descriptor(folder_.path() / "link"), file);
  EXPECT_EQ(own_descriptor("/dev/stdout"), 1);
  close(file);
  EXPECT_EQ(own_descriptor("/dev/fd/" + number), std::nullopt);
  EXPECT_EQ(own_descriptor(path), std::nullopt);
  EXPECT_EQ(own_descriptor(folder_.path() / number), std::nullopt);
}

TEST(TemporaryFolders, AreRemovedWithWhatIsInThem) {
  fs::path path;
  {
    const TemporaryFolder folder("test");
    path = folder.path();
    std::ofstream(path / "f") << "x";
    EXPECT_TRUE(fs::is_directory(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolders, NeedAPlace) {
  const TemporaryFolder around("test");
  const std::string none = around.path() / "none";
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", none.c_str(), 1);
  try {
    const TemporaryFolder folder("test");
    ADD_FAILURE() << "made in " << folder.path();
  } catch (const MissingError& error) {
    EXPECT_NE(std::string(error.what()).find("TMPDIR = '" + none + "'"), std::string::npos);
  }
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace fuseline
