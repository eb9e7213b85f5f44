// What a grading says to students and to the lecturer, beyond points.
#include "lab/course/feedback.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/course/course_folder.h"
#include "lab/workspace.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Task 2.3 is a choice, so every other letter is wrong; task 2.1 is a number.
class CourseFeedback : public ::testing::Test {
 protected:
  CourseFeedback() {
    make_course({.folder = folder_,
                 .settings = {.name = "GPU <performance>", .labs = {{2, {}}}},
                 .students = {"ada", "grace", "alan"}});
    course_ = load_course(folder_);
  }

  [[nodiscard]] std::map<std::string, std::string> right(const std::string& student) const {
    return right_answers(make_lab(2, Student(student, course_.secret)));
  }

  void hand_in(const std::string& student, const std::map<std::string, std::string>& answers) {
    const fs::path to = course_.submissions() / student;
    fs::create_directories(to.parent_path());
    fs::copy(course_.student_folder(student, 2), to);
    const Student who(student, course_.secret);
    auto given = right(student);
    for (const auto& [id, text] : answers) given[id] = text;
    test::write_file(to / "answers.toml", answers_text(make_lab(2, who), who, given));
  }

  [[nodiscard]] Grading grade() const {
    return grade_course(
        course_,
        {.submissions = course_.submissions(), .submitted = {}, .again = false, .parallel = {}});
  }

  fs::path folder_ = test::new_folder() / "course";
  Course course_;
};

std::string line_with(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find("\n" + begin);
  if (at == std::string::npos) return "no line " + begin;
  return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST_F(CourseFeedback, APageHasEveryTaskWithItsVerdictAndNoKey) {
  hand_in("ada", {{"2.1", "1 FLOP/B"}, {"2.2", "?"}});
  const std::string page = feedback_page(course_, grade(), "ada");
  EXPECT_THAT(
      page, AllOf(HasSubstr("## Lab 2: rooflines and ridge points"), HasSubstr("8 of 10 points.")));
  EXPECT_THAT(line_with(page, "| 2.1 |"), AllOf(HasSubstr("| 0/1 | 1 FLOP/B | wrong |")));
  EXPECT_THAT(line_with(page, "| 2.2 |"), HasSubstr("| unanswered |"));
  EXPECT_THAT(line_with(page, "| 2.4 |"), HasSubstr("| right |"));
  for (const char* task : {"2.1", "2.2"})
    EXPECT_THAT(page, Not(HasSubstr(right("ada").at(task)))) << task;
}

TEST_F(CourseFeedback, APageSaysThatNothingWasHandedIn) {
  hand_in("ada", {});
  EXPECT_THAT(feedback_page(course_, grade(), "grace"),
              AllOf(HasSubstr("0 of 10 points. State: missing. Note: nothing was handed in."),
                    Not(HasSubstr("| task |"))));
}

TEST_F(CourseFeedback, WhatAStudentWroteIsNoMarkup) {
  hand_in("ada", {{"2.1", "1 | FLOP/B <script>alert(1)</script> ![x](http://y) `z`"}});
  const std::string page = feedback_page(course_, grade(), "ada");
  const std::string line = line_with(page, "| 2.1 |");
  EXPECT_EQ(std::ranges::count(line, '|'), 6) << line;
  for (const char* markup : {"<script", "](", "`z", "<performance>"})
    EXPECT_THAT(page, Not(HasSubstr(markup)));
}

TEST_F(CourseFeedback, TasksAreCountedOverTheClass) {
  hand_in("ada", {{"2.1", "1 FLOP/B"}});
  hand_in("grace", {{"2.1", "?"}});
  const std::string tasks = tasks_csv(course_, grade());
  EXPECT_THAT(tasks, HasSubstr("lab,task,right,wrong,unanswered,unjudged,"));
  EXPECT_THAT(line_with(tasks, "2,2.1,"), HasSubstr("2,2.1,0,1,1,0,"));
  EXPECT_THAT(line_with(tasks, "2,2.2,"), HasSubstr("2,2.2,2,0,0,0,,0"));
}

TEST_F(CourseFeedback, PagesThatDidNotChangeStayUntouched) {
  hand_in("ada", {});
  const fs::path folder = course_.grades() / "feedback";
  const WrittenFeedback first = write_feedback(course_, grade(), folder);
  EXPECT_EQ(first.pages, 3U);
  EXPECT_EQ(first.changed, 3U);
  EXPECT_EQ(write_feedback(course_, grade(), folder).changed, 0U);
  hand_in("alan", {});
  EXPECT_EQ(write_feedback(course_, grade(), folder).changed, 1U);
  EXPECT_THAT(test::read_file(folder / "alan.md"), HasSubstr("10 of 10 points."));
}

}  // namespace
}  // namespace fuseline::lab
