#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/output_folder.h"

namespace {

std::vector<std::string>* recorded = nullptr;

}  // namespace

// The program's calls end here, so that a test sees in which order files reach the disk.
extern "C" int fsync(int descriptor) {
  if (recorded != nullptr) {
    struct stat status {};
    fstat(descriptor, &status);
    recorded->emplace_back(S_ISDIR(status.st_mode) ? "sync folder" : "sync file");
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

extern "C" int rename(const char* from, const char* to) {
  if (recorded != nullptr) recorded->emplace_back("rename");
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace fuseline {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class OutputFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("output_file_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override {
    recorded = nullptr;
    fs::remove_all(folder_);
  }

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.insert(entry.path().filename());
    return out;
  }
  static std::string refusal(const fs::path& path) {
    try {
      replace_file(path, "text");
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().file, path.string());
      EXPECT_FALSE(error.problem().allowed.empty());
      return error.problem().message;
    }
    return "accepted";
  }

  fs::path folder_;
};

TEST_F(OutputFile, IsNewOrTakesThePlaceOfAnother) {
  replace_file(folder_ / "new", "one");
  EXPECT_EQ(text_of(folder_ / "new"), "one");
  replace_file(folder_ / "new", "two");
  EXPECT_EQ(text_of(folder_ / "new"), "two");
  EXPECT_EQ(names(), std::set<std::string>{"new"});
}

TEST_F(OutputFile, IsOnDiskBeforeItHasItsName) {
  std::vector<std::string> calls;
  recorded = &calls;
  replace_file(folder_ / "f", "text");
  recorded = nullptr;
  EXPECT_EQ(calls, (std::vector<std::string>{"sync file", "rename", "sync folder"}));
}

TEST_F(OutputFile, KeepsThePermissionsOfWhatItReplaces) {
  const fs::path path = write("f", "old");
  fs::permissions(path, fs::perms(0640));
  replace_file(path, "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  const mode_t mask = umask(0027);
  replace_file(folder_ / "g", "new");
  umask(mask);
  EXPECT_EQ(fs::status(folder_ / "g").permissions(), fs::perms(0640));
}

TEST_F(OutputFile, ALinkStaysAndItsTargetIsRewritten) {
  const fs::path target = write("target", "old");
  fs::create_symlink("target", folder_ / "link");
  fs::create_symlink("link", folder_ / "further");
  replace_file(folder_ / "further", "new");
  EXPECT_EQ(text_of(target), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "further"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_FALSE(fs::is_symlink(target));
}

TEST_F(OutputFile, ALinkToNothingGetsItsTarget) {
  fs::create_directory(folder_ / "there");
  fs::create_symlink("there/target", folder_ / "link");
  replace_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(text_of(folder_ / "there" / "target"), "new");
}

TEST_F(OutputFile, LinksInACircleAreRefused) {
  fs::create_symlink("a", folder_ / "b");
  fs::create_symlink("b", folder_ / "a");
  EXPECT_NE(refusal(folder_ / "a").find("symbolic links"), std::string::npos);
  EXPECT_TRUE(fs::is_symlink(folder_ / "a"));
}

TEST_F(OutputFile, APipeIsWrittenTo) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
  const std::string text(300'000, 'x');  // more than a pipe holds
  std::string got;
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  fcntl(reader, F_SETFL, 0);
  std::thread reading([&] {
    char chunk[4096];
    while (got.size() < text.size()) {
      const ssize_t count = read(reader, chunk, sizeof chunk);
      if (count > 0) got.append(chunk, static_cast<std::size_t>(count));
    }
  });
  replace_file(pipe, text);
  reading.join();
  close(reader);
  EXPECT_EQ(got, text);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(names(), std::set<std::string>{"pipe"});
}

TEST_F(OutputFile, APipeThatNobodyReadsIsRefusedAtOnce) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
  EXPECT_EQ(refusal(pipe), "is a pipe, and no program reads from it");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(OutputFile, AReaderThatGoesAwayIsAnErrorAndEndsNothing) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_NE(refusal("/dev/fd/" + std::to_string(ends[1])).find("cannot be written"),
            std::string::npos);
  close(ends[1]);
}

TEST_F(OutputFile, OfOurOwnDescriptorsIsWrittenWhereTheyStand) {
  const fs::path path = write("log", "before\n");
  const int log = open(path.c_str(), O_WRONLY | O_APPEND);
  replace_file("/dev/fd/" + std::to_string(log), "after\n");
  close(log);
  EXPECT_EQ(text_of(path), "before\nafter\n");
}

TEST_F(OutputFile, ADeviceStaysADevice) {
  const fs::path null = folder_ / "null";
  if (mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "making a device needs more rights";
  }
  replace_file(null, "text");
  EXPECT_TRUE(fs::is_character_file(null));
  EXPECT_NE(refusal("/dev/full").find("No space left"), std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(OutputFile, WhatCannotBeWrittenSaysWhy) {
  write("f", "x");
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_EQ(refusal(folder_), "is a folder");
  EXPECT_EQ(refusal(folder_ / "none" / "f"), "its folder does not exist");
  EXPECT_EQ(refusal(folder_ / "f" / "g"), "is below something that is no folder");
  EXPECT_NE(refusal(folder_ / std::string(300, 'n')).find("too long"), std::string::npos);
  EXPECT_EQ(names(), std::set<std::string>{"f"});
}

TEST_F(OutputFile, TheLongestNameCanBeWritten) {
  replace_file(folder_ / std::string(255, 'n'), "text");
  EXPECT_EQ(text_of(folder_ / std::string(255, 'n')), "text");
}

TEST_F(OutputFile, TryingLeavesEverythingAsItWas) {
  write("curves.csv", "mine");
  write("curves.csv.trial", "mine too");
  check_replaceable(folder_ / "curves.csv");
  check_replaceable(folder_ / "other");
  EXPECT_EQ(text_of(folder_ / "curves.csv"), "mine");
  EXPECT_EQ(text_of(folder_ / "curves.csv.trial"), "mine too");
  EXPECT_EQ(names(), (std::set<std::string>{"curves.csv", "curves.csv.trial"}));
  EXPECT_THROW(check_replaceable(folder_ / "none" / "f"), InputError);
}

TEST_F(OutputFile, AFolderTakesThePlaceOfAnotherInOneStep) {
  fs::create_directory(folder_ / "out");
  write("out/old", "old");
  OutputFolder draft(folder_ / "out" / "");
  std::ofstream(draft.path() / "new") << "new";
  draft.take_place();
  EXPECT_TRUE(fs::exists(folder_ / "out" / "new"));
  EXPECT_FALSE(fs::exists(folder_ / "out" / "old"));
}

TEST_F(OutputFile, ADraftOfAFolderThatIsNotUsedLeavesNothing) {
  { const OutputFolder draft(folder_ / "out"); }
  EXPECT_TRUE(names().empty());
}

TEST_F(OutputFile, ALinkToAFolderStaysALink) {
  fs::create_directory(folder_ / "there");
  fs::create_directory_symlink("there", folder_ / "link");
  fs::create_directory_symlink("nowhere", folder_ / "dangling");
  for (const char* name : {"link", "dangling"}) {
    OutputFolder draft(folder_ / name);
    std::ofstream(draft.path() / "new") << "new";
    draft.take_place();
    EXPECT_TRUE(fs::is_symlink(folder_ / name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder_ / "there" / "new"));
  EXPECT_TRUE(fs::exists(folder_ / "nowhere" / "new"));
}

}  // namespace
}  // namespace fuseline
