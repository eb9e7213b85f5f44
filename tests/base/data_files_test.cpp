#include "base/data_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

using test::problem_of;

class ReadInputFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("read_input_file_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  static ssize_t write_to(int descriptor, const std::string& text) {
    return ::write(descriptor, text.data(), text.size());
  }

  fs::path folder_;
};

TEST_F(ReadInputFile, GivesEveryByte) {
  const std::string text("a\r\n\0b\xff", 6);
  EXPECT_EQ(read_input_file(write("f", text)), text);
}

TEST_F(ReadInputFile, RefusesWhatHoldsNoText) {
  EXPECT_EQ(problem_of([&] { read_input_file(folder_ / "none"); }).message, "no such file");
  EXPECT_EQ(problem_of([&] { read_input_file(folder_); }).message, "is a folder");
  EXPECT_EQ(problem_of([&] { read_input_file(write("f", "")); }).message, "the file is empty");
  // A path through a file is no folder.
  EXPECT_EQ(problem_of([&] { read_input_file(write("f", "x") / "g"); }).file,
            (folder_ / "f" / "g").string());
}

TEST_F(ReadInputFile, RefusesAFileThatCannotBeRead) {
  // Address 0 of our own memory: opens, but reading fails whoever runs the test.
  const InputProblem p = problem_of([] { read_input_file("/proc/self/mem"); });
  EXPECT_EQ(p.file, "/proc/self/mem");
  EXPECT_EQ(p.message.find("cannot be read"), 0U) << p.message;
}

TEST_F(ReadInputFile, RefusesMoreThanTheLimit) {
  EXPECT_EQ(read_input_file(write("f", "12345678"), Bytes(8)), "12345678");
  const InputProblem p = problem_of([&] { read_input_file(write("f", "123456789"), Bytes(8)); });
  EXPECT_EQ(p.message, "is too large");
  EXPECT_EQ(p.allowed, "up to 8 bytes");
}

// Opening it would wait for a writer for ever.
TEST_F(ReadInputFile, RefusesANamedPipe) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0666), 0);
  const InputProblem p = problem_of([&] { read_input_file(folder_ / "pipe"); });
  EXPECT_NE(p.message.find("named pipe"), std::string::npos);
  EXPECT_NE(p.allowed.find("/dev/stdin"), std::string::npos);
}

TEST_F(ReadInputFile, RefusesDevices) {
  for (const char* device : {"/dev/zero", "/dev/null", "/dev/full"}) {
    EXPECT_EQ(problem_of([&] { read_input_file(device); }).message, "is a device") << device;
  }
}

// What the shell opens for <(command) and for a program's standard input.
TEST_F(ReadInputFile, TakesAPipeThatIsOpen) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write_to(ends[1], "a = 1\n"), 6);
  close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(read_input_file(path), "a = 1\n");
  EXPECT_NE(problem_of([&] { read_input_file(path); }).message.find("only once"),
            std::string::npos);
  close(ends[0]);
}

TEST_F(ReadInputFile, APipeFromWhichNothingComesIsGivenUp) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  const auto at_once = std::chrono::milliseconds(0);
  EXPECT_NE(
      problem_of([&] { read_input_file(path, Bytes(100), at_once); }).message.find("nothing came"),
      std::string::npos);
  close(ends[0]);
  close(ends[1]);
}

TEST(DataFileNames, AreInNaturalOrder) {
  const std::vector<std::string> names = data_file_names("models");
  const auto place = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_LT(place("llama2-7b"), place("llama2-13b"));
  EXPECT_LT(place("llama2-13b"), place("llama2-70b"));
  EXPECT_LT(place("gpt3-13b"), place("gpt3-175b"));
  EXPECT_LT(place("gpt3-175b"), place("llama2-7b"));
}

TEST(FindDataFile, TakesNamesAliasesAndPaths) {
  const DataFileKind kind{"model", "models"};
  const fs::path shipped = find_data_file("llama2-7b", kind);
  EXPECT_EQ(shipped.filename(), "llama2-7b.toml");
  EXPECT_TRUE(fs::exists(shipped));
  EXPECT_EQ(find_data_file("llama", kind, {{"llama", "llama2-7b"}}), shipped);
  EXPECT_EQ(find_data_file(shipped.string(), kind), shipped);
}

TEST(FindDataFile, UnknownNamesGiveTheNearest) {
  const DataFileKind kind{"model", "models"};
  InputProblem p = problem_of([&] { find_data_file("lama2-7b", kind); });
  EXPECT_EQ(p.field, "model");
  EXPECT_EQ(p.value, "lama2-7b");
  EXPECT_EQ(p.message, "unknown model");
  EXPECT_EQ(p.nearest, "llama2-7b");
  EXPECT_NE(p.allowed.find("gpt2-xl"), std::string::npos) << p.allowed;
  // Aliases are as good a guess as names.
  EXPECT_EQ(problem_of([&] {
              find_data_file("qwertz", kind, {{"qwerty", "llama2-7b"}});
            }).nearest,
            "qwerty");
  // What is written as a path is missed as a file.
  p = problem_of([&] { find_data_file("models/llama2-7.toml", kind); });
  EXPECT_EQ(p.message, "no such file");
  EXPECT_EQ(p.nearest, "llama2-7b");
  EXPECT_EQ(problem_of([&] { find_data_file("", kind); }).message, "unknown model");
}

TEST(RelativeToFile, StartsAtTheFilesFolder) {
  EXPECT_EQ(relative_to_file("m/x.csv", "a/b/s.toml"), fs::path("a/b/m/x.csv"));
  EXPECT_EQ(relative_to_file("../x.csv", "a/b/s.toml"), fs::path("a/x.csv"));
  EXPECT_EQ(relative_to_file("/x.csv", "a/b/s.toml"), fs::path("/x.csv"));
  EXPECT_EQ(relative_to_file("x.csv", "s.toml"), fs::path("x.csv"));
}

}  // namespace
}  // namespace fuseline
