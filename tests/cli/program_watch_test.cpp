// program --watch: an answer for every save, in the form that was asked for.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Takes the place of standard output while it lives. Whenever an answer is flushed, it does the
// next thing that a person would do, and presses Ctrl-C at the end.
class Watcher : public std::stringbuf {
 public:
  explicit Watcher(std::vector<std::function<void()>> steps)
      : steps_(std::move(steps)), before_(std::cout.rdbuf(this)) {}
  ~Watcher() override { std::cout.rdbuf(before_); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  [[nodiscard]] const std::vector<std::string>& answers() const { return answers_; }

 private:
  int sync() override {
    answers_.push_back(str());
    str("");
    if (answers_.size() <= steps_.size())
      steps_[answers_.size() - 1]();
    else
      std::raise(SIGINT);
    return 0;
  }

  std::vector<std::function<void()>> steps_;
  std::vector<std::string> answers_;
  std::streambuf* before_;
};

std::string shipped_text() {
  std::ifstream in(FUSELINE_SOURCE_DIR "/scenarios/programs/norm-router.fuse");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string fresh_name(const std::string& name) {
  const std::string path = testing::TempDir() + name;
  std::filesystem::remove_all(path);
  return path;
}

void save(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(ProgramWatch, SaysThatTheFileIsNotThereAndAnswersAsSoonAsItIs) {
  const std::string path = fresh_name("watched.fuse");
  Watcher watcher({[&] { save(path, shipped_text()); }});
  cli({"program", "check", path, "--watch"});
  ASSERT_EQ(watcher.answers().size(), 2U);
  EXPECT_THAT(watcher.answers()[0], StartsWith("fuseline: error: "));
  EXPECT_THAT(watcher.answers()[0], HasSubstr("watched.fuse"));
  EXPECT_THAT(watcher.answers()[1], HasSubstr("legal on"));
}

// Of a file that is not there, of one that is no text of programs, and of a legal one.
TEST(ProgramWatch, EveryAnswerIsAnObjectWhereJsonIsAskedFor) {
  const std::string path = fresh_name("watched_json.fuse");
  Watcher watcher({[&] { save(path, "no program"); }, [&] { save(path, shipped_text()); }});
  cli({"program", "check", path, "--watch", "--format", "json"});
  ASSERT_EQ(watcher.answers().size(), 3U);
  std::vector<nlohmann::json> answers;
  for (const std::string& text : watcher.answers()) answers.push_back(nlohmann::json::parse(text));
  for (const nlohmann::json& one : answers) {
    EXPECT_EQ(one["schema"], "fuseline.program/1");
    EXPECT_EQ(one["verb"], "check");
    EXPECT_EQ(one["file"], path);
  }
  EXPECT_THAT(answers[0]["error"].get<std::string>(), HasSubstr("watched_json.fuse"));
  EXPECT_FALSE(answers[1]["legal"].get<bool>());
  EXPECT_FALSE(answers[1]["diagnoses"].empty());
  EXPECT_TRUE(answers[2]["legal"].get<bool>());
}

}  // namespace
}  // namespace fuseline
