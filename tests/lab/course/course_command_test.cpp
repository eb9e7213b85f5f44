// `fuseline course` as a lecturer uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "cli/app.h"
#include "lab/course/course.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct CourseRun {
  int status = -1;
  std::string out, err;
};

CourseRun course_command(std::vector<std::string> args) {
  args.insert(args.begin(), "course");
  std::ostringstream out, err;
  CourseRun run;
  run.status = run_cli(args, out, err);
  run.out = out.str();
  run.err = err.str();
  return run;
}

// Right answers of these students to lab 2, as they are handed in.
void hand_in_lab_two(const fs::path& folder, const std::vector<std::string>& students) {
  const Course course = load_course(folder);
  for (const std::string& id : students) {
    const Student who(id, course.secret);
    const fs::path to = course.submissions() / id / "lab-02";
    fs::create_directories(to.parent_path());
    fs::copy(course.student_folder(id, 2), to);
    const Lab lab = make_lab(2, who);
    test::write_file(to / "answers.toml", answers_text(lab, who, right_answers(lab)));
  }
}

TEST(CourseCommand, InitAndGradeFromBeginningToEnd) {
  const fs::path folder = test::new_folder() / "gpu";
  const fs::path enrolled = test::new_folder() / "enrolled.csv";
  test::write_file(enrolled, "name,student\nAda,ada\nGrace,grace\n");
  const CourseRun init =
      course_command({"init", folder.string(), "--name", "GPUs", "--students", enrolled.string(),
                      "--student", "alan", "--labs", "1,2", "--deadline", "2099-11-02 23:59",
                      "--days-apart", "7", "--utc-offset", "+01:00"});
  ASSERT_EQ(init.status, 0) << init.err;
  EXPECT_THAT(init.out, AllOf(HasSubstr("course: GPUs (3 students, 2 labs)"),
                              HasSubstr("6 folders made"), HasSubstr("course grade")));
  EXPECT_THAT(test::read_file(folder / "course.toml"),
              AllOf(HasSubstr("2099-11-02 23:59 +01:00"), HasSubstr("2099-11-09 23:59 +01:00")));
  const std::string secret = test::read_file(folder / "secret.txt");
  EXPECT_THAT(init.out + init.err, Not(HasSubstr(secret.substr(0, 48))));

  hand_in_lab_two(folder, {"ada", "alan"});
  const CourseRun grade = course_command({"grade", folder.string()});
  EXPECT_EQ(grade.status, 0) << grade.err;
  EXPECT_THAT(grade.out, AllOf(HasSubstr("judged now 2, unchanged 0"), HasSubstr("6.7/10")));
  EXPECT_EQ(grade.err, "");
  EXPECT_THAT(
      test::read_file(folder / "grades/gradebook.csv"),
      AllOf(HasSubstr("ada,2,10,10,0,0,10,graded,\n"), HasSubstr("grace,2,0,10,0,0,0,missing,")));
  EXPECT_THAT(test::read_file(folder / "grades/gradebook.json"), HasSubstr("\"GPUs\""));
  EXPECT_THAT(course_command({"grade", folder.string()}).out,
              HasSubstr("judged now 0, unchanged 2"));

  const CourseRun late = course_command({"init", folder.string(), "--student", "edsger"});
  EXPECT_EQ(late.status, 0) << late.err;
  EXPECT_THAT(late.out, HasSubstr("2 folders made, 6 were there"));
  EXPECT_EQ(test::read_file(folder / "secret.txt"), secret);
}

TEST(CourseCommand, ASecretThatOthersCanReadIsTold) {
  const fs::path folder = test::new_folder() / "gpu";
  ASSERT_EQ(course_command({"init", folder.string(), "--student", "ada", "--labs", "1"}).status, 0);
  fs::permissions(folder / "secret.txt", fs::perms::others_read, fs::perm_options::add);
  EXPECT_THAT(course_command({"grade", folder.string()}).err, HasSubstr("chmod 600"));
}

TEST(CourseCommand, WrongInputIsExitTwoAndMakesNothing) {
  const fs::path parent = test::new_folder();
  const std::string folder = (parent / "course").string();
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {},
           {"grad", folder},
           {"init"},
           {"init", folder},
           {"init", folder, "--student", "a b"},
           {"init", folder, "--student", "ada,"},
           {"init", folder, "--student", "ada", "--labs", "99"},
           {"init", folder, "--student", "ada", "--labs", "1,1"},
           {"init", folder, "--student", "ada", "--deadline", "tomorrow"},
           {"init", folder, "--student", "ada", "--days-apart", "7"},
           {"init", folder, "--student", "ada", "--utc-offset", "CET"},
           {"init", folder, "--students", "/no/such.csv"},
           {"init", folder + "/no/such", "--student", "ada"},
           {"grade"},
           {"grade", folder},
           {"grade", parent.string()},
           {"leaderboard"},
           {"leaderboard", folder}}) {
    const CourseRun run = course_command(words);
    EXPECT_EQ(run.status, 2) << ::testing::PrintToString(words) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("error"));
    EXPECT_TRUE(fs::is_empty(parent)) << ::testing::PrintToString(words);
  }
  EXPECT_THAT(course_command({"grad"}).err, HasSubstr("did you mean 'grade'"));
  for (const char* verb : {"--help", "init", "grade", "leaderboard"}) {
    EXPECT_EQ(course_command(verb[0] == '-' ? std::vector<std::string>{verb}
                                            : std::vector<std::string>{verb, "--help"})
                  .status,
              0);
  }
  ASSERT_EQ(course_command({"init", folder, "--student", "ada", "--labs", "1"}).status, 0);
  EXPECT_THAT(course_command({"init", folder, "--labs", "2"}).err, HasSubstr("course.toml"));
  EXPECT_EQ(course_command({"grade", folder, "--submissions", folder}).status, 2);
  EXPECT_FALSE(fs::exists(parent / "course/grades/gradebook.csv"));
}

std::size_t results_in(const fs::path& folder) {
  std::size_t count = 0;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "grades/results", none)) {
    if (entry.path().extension() == ".json") ++count;
  }
  return count;
}

#ifdef FUSELINE_BINARY
// As a loss of power does, or somebody who has no more time.
TEST(CourseCommand, WhatWasJudgedBeforeAKillIsNotJudgedAgain) {
  const fs::path folder = test::new_folder() / "gpu";
  std::vector<std::string> students;
  for (int i = 0; i < 40; ++i) students.push_back(fmt::format("s{:02}", i));
  ASSERT_EQ(course_command({"init", folder.string(), "--student",
                            fmt::format("{}", fmt::join(students, ",")), "--labs", "2"})
                .status,
            0);
  hand_in_lab_two(folder, students);
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    execl(FUSELINE_BINARY, FUSELINE_BINARY, "course", "grade", folder.c_str(), nullptr);
    _exit(127);
  }
  while (results_in(folder) < 3 && waitpid(child, nullptr, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const std::size_t before = results_in(folder);
  EXPECT_GE(before, 3U);
  const CourseRun rest = course_command({"grade", folder.string()});
  EXPECT_EQ(rest.status, 0) << rest.err;
  EXPECT_THAT(
      rest.out,
      AllOf(HasSubstr(fmt::format("judged now {}, unchanged {}", students.size() - before, before)),
            HasSubstr("10.0/10")));
}
#endif

}  // namespace
}  // namespace fuseline::lab
