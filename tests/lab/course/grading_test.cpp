// What becomes of folders that students hand in: a row for each student and lab, whatever is in
// them.
#include "lab/course/grading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "lab/course/course_folder.h"
#include "lab/course/gradebook.h"
#include "lab/course/submissions.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CourseGrading : public ::testing::Test {
 protected:
  CourseGrading() {
    make_course({.folder = folder_,
                 .settings = {.name = "a course",
                              .labs = {{1, parse_moment("2026-11-02 23:59", {})}, {2, {}}}},
                 .students = {"ada", "grace", "alan"}});
    course_ = load_course(folder_);
  }

  // A folder below submissions/ with the answers of this student: right ones, or those given.
  fs::path hand_in(const std::string& place, const std::string& student, int lab,
                   const std::map<std::string, std::string>& answers = {}) {
    const fs::path to = course_.submissions() / place;
    fs::create_directories(to.parent_path());
    fs::copy(course_.student_folder(student, lab), to);
    const Student who(student, course_.secret);
    const Lab made = make_lab(lab, who);
    auto given = right_answers(made);
    for (const auto& [id, text] : answers) given[id] = text;
    test::write_file(to / "answers.toml", answers_text(made, who, given));
    return to;
  }

  Grading grade(bool again = false) {
    return grade_course(course_, {.submissions = course_.submissions(),
                                  .submitted = submitted_,
                                  .again = again,
                                  .parallel = {}});
  }

  static const GradeRow& row(const Grading& grading, const std::string& student, int lab) {
    for (const GradeRow& r : grading.rows) {
      if (r.student == student && r.lab == lab) return r;
    }
    ADD_FAILURE() << "no row for " << student << " and lab " << lab;
    return grading.rows.front();
  }

  void submitted(const std::string& lines) {
    submitted_ = test::new_folder() / "times.csv";
    test::write_file(*submitted_, "student,lab,time\n" + lines);
  }

  fs::path folder_ = test::new_folder() / "course";
  Course course_;
  std::optional<fs::path> submitted_;
};

TEST_F(CourseGrading, EverybodyHasARowForEachLab) {
  const Grading grading = grade();
  ASSERT_EQ(grading.rows.size(), 6U);
  for (const GradeRow& r : grading.rows) {
    EXPECT_EQ(name_of(r.status), std::string("missing"));
    EXPECT_EQ(r.points, 0);
    EXPECT_EQ(r.of, r.lab == 1 ? 9 : 10);
  }
  EXPECT_EQ(grading.judged, 0U);
}

TEST_F(CourseGrading, FindsFoldersAsPlatformsUnpackThem) {
  hand_in("ada_4711_assignsubmission_file/lab-01", "ada", 1);
  hand_in("Hopper Grace 2/files/upload 7", "grace", 2);  // nothing but its head says whose it is
  hand_in("alan/deep/er/and/deeper/lab-02 (2)", "alan", 2, {{"2.1", "1 FLOP/B"}});
  const Grading grading = grade();
  EXPECT_EQ(row(grading, "ada", 1).points, 9);
  EXPECT_EQ(row(grading, "grace", 2).points, 10);
  EXPECT_EQ(row(grading, "alan", 2).points, 9);
  EXPECT_EQ(row(grading, "alan", 2).status, RowStatus::graded);
  EXPECT_EQ(row(grading, "alan", 1).status, RowStatus::missing);
  EXPECT_EQ(grading.judged, 3U);
  // As it was handed out.
  fs::copy(course_.student_folder("alan", 1), course_.submissions() / "alan/lab-01");
  EXPECT_THAT(row(grade(), "alan", 1).note, ::testing::StartsWith("no task is answered"));
}

TEST_F(CourseGrading, AFolderBelongsToThePlaceItLiesIn) {
  hand_in("ada/lab-02", "ada", 2);
  // Grace hands in what Ada was given, answers and all; Ada's row does not notice.
  fs::create_directories(course_.submissions() / "grace");
  fs::copy(course_.submissions() / "ada/lab-02", course_.submissions() / "grace/lab-02");
  const Grading grading = grade();
  EXPECT_EQ(row(grading, "ada", 2).status, RowStatus::graded);
  EXPECT_EQ(row(grading, "ada", 2).points, 10);
  EXPECT_EQ(row(grading, "grace", 2).status, RowStatus::not_theirs);
  EXPECT_EQ(row(grading, "grace", 2).points, 0);
  EXPECT_THAT(row(grading, "grace", 2).note, HasSubstr("another student's"));
}

TEST_F(CourseGrading, AWrongTagIsNamed) {
  const fs::path to = hand_in("ada/lab-01", "ada", 1);
  std::string text = test::read_file(to / "answers.toml");
  const std::size_t at = text.find("tag = \"") + 7;
  text.replace(at, 4, "0000");
  test::write_file(to / "answers.toml", text);
  const Grading grading = grade();
  EXPECT_EQ(row(grading, "ada", 1).status, RowStatus::not_theirs);
  EXPECT_THAT(row(grading, "ada", 1).note, HasSubstr("was not started for student 'ada'"));
}

TEST_F(CourseGrading, BrokenAndHostileFilesAreNamedAndHoldNothingUp) {
  test::write_file(hand_in("ada/lab-01", "ada", 1) / "answers.toml", "lab = 1\nstudent = \"ada\n");
  const fs::path linked = hand_in("grace/lab-01", "grace", 1);
  fs::remove(linked / "answers.toml");
  fs::create_symlink(folder_ / "secret.txt", linked / "answers.toml");
  const fs::path pipe = hand_in("alan/lab-01", "alan", 1);
  fs::remove(pipe / "answers.toml");
  ASSERT_EQ(mkfifo((pipe / "answers.toml").c_str(), 0600), 0);
  fs::create_directories(course_.submissions() / "ada/lab-02");  // an empty folder
  fs::create_directory_symlink("/", course_.submissions() / "grace/everything");
  test::write_file(hand_in("alan/lab-02", "alan", 2) / "answers.toml", std::string(2 << 20, '#'));
  const Grading grading = grade();
  EXPECT_EQ(row(grading, "ada", 1).status, RowStatus::broken);
  EXPECT_EQ(row(grading, "grace", 1).status, RowStatus::hostile);
  EXPECT_THAT(row(grading, "grace", 1).note, HasSubstr("is no plain file"));
  EXPECT_EQ(row(grading, "alan", 1).status, RowStatus::hostile);
  EXPECT_EQ(row(grading, "ada", 2).status, RowStatus::broken);
  EXPECT_EQ(row(grading, "alan", 2).status, RowStatus::broken);
  ASSERT_EQ(grading.notes.size(), 1U);
  EXPECT_THAT(grading.notes[0], HasSubstr("grace/everything: is a link"));
  for (const GradeRow& r : grading.rows) EXPECT_EQ(r.note.find('\n'), std::string::npos);
}

TEST_F(CourseGrading, OfTwoSubmissionsTheNewestCountsAndBothAreNamed) {
  const fs::path old = hand_in("attempt 1/x", "ada", 2, {{"2.1", "1 FLOP/B"}});
  hand_in("attempt 2/x", "ada", 2);
  fs::last_write_time(old / "answers.toml",
                      fs::file_time_type::clock::now() - std::chrono::hours{9});
  const Grading grading = grade();
  const GradeRow& ada = row(grading, "ada", 2);
  EXPECT_EQ(ada.status, RowStatus::several);
  EXPECT_EQ(ada.points, 10);
  EXPECT_THAT(ada.note, AllOf(HasSubstr("2 submissions: attempt 2/x counts"),
                              HasSubstr("not attempt 1/x (9 points)")));
  // The same twice is no second submission.
  fs::remove_all(old);
  fs::copy(course_.submissions() / "attempt 2/x", old);
  const Grading same = grade();
  EXPECT_EQ(row(same, "ada", 2).status, RowStatus::graded);
}

TEST_F(CourseGrading, LateDaysCostWhatTheCourseSays) {
  hand_in("ada/lab-01", "ada", 1);
  hand_in("grace/lab-01", "grace", 1);
  hand_in("alan/lab-01", "alan", 1);
  submitted(
      "ada,1,2026-11-02 23:00\ngrace,1,2026-11-03 10:00\ngrace,1,2026-11-04 10:00\n"
      "alan,1,2026-12-24 10:00\nnobody,1,2026-11-02 23:00\nada,2,2026-11-02 23:00\n");
  const Grading grading = grade();
  EXPECT_EQ(row(grading, "ada", 1).late.days, 0);
  EXPECT_EQ(row(grading, "ada", 1).final_points(), 900);
  EXPECT_EQ(row(grading, "grace", 1).late.days, 2);
  EXPECT_EQ(row(grading, "grace", 1).deduction, 180);
  EXPECT_EQ(row(grading, "grace", 1).final_points(), 720);
  EXPECT_THAT(row(grading, "grace", 1).note, HasSubstr("handed in 2026-11-04 10:00 +00:00"));
  EXPECT_EQ(row(grading, "alan", 1).status, RowStatus::too_late);
  EXPECT_EQ(row(grading, "alan", 1).final_points(), 0);
  EXPECT_THAT(row(grading, "ada", 2).note, HasSubstr("no folder is theirs"));
  ASSERT_EQ(grading.notes.size(), 1U);
  EXPECT_THAT(grading.notes[0], HasSubstr("1 line is about nobody"));
  // Without a table the files say it, and the note says that they do.
  submitted_.reset();
  EXPECT_THAT(row(grade(), "alan", 1).note, HasSubstr("by the newest change of its files"));
  submitted("ada,1,yesterday\n");
  EXPECT_THROW(grade(), InputError);
}

TEST_F(CourseGrading, WhatDidNotChangeIsNotJudgedAgain) {
  const fs::path ada = hand_in("ada/lab-02", "ada", 2);
  hand_in("grace/lab-02", "grace", 2);
  const Grading first = grade();
  EXPECT_EQ(first.judged, 2U);
  const Grading second = grade();
  EXPECT_EQ(second.judged, 0U);
  EXPECT_EQ(second.kept, 2U);
  EXPECT_EQ(gradebook_csv(second), gradebook_csv(first));
  EXPECT_EQ(grade(true).judged, 2U);
  test::write_file(ada / "answers.toml", test::read_file(ada / "answers.toml") + "# later\n");
  EXPECT_EQ(grade().judged, 1U);
  // A damaged result is judged again.
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "grades/results/grace")) {
    test::write_file(entry.path(), "{\"schema\":");
  }
  const Grading healed = grade();
  EXPECT_EQ(healed.judged, 1U);
  EXPECT_EQ(gradebook_csv(healed), gradebook_csv(first));
}

TEST_F(CourseGrading, ARunThatWasEndedIsContinued) {
  for (const char* id : {"ada", "grace", "alan"}) hand_in(std::string(id) + "/lab-02", id, 2);
  std::atomic<bool> stop = false;
  const Grading ended = grade_course(
      course_,
      {.submissions = course_.submissions(),
       .submitted = {},
       .again = false,
       .parallel = {.threads = 1, .stop = &stop, .progress = [&](std::size_t done, std::size_t) {
                      if (done == 2) stop = true;
                    }}});
  EXPECT_TRUE(ended.stopped);
  const Grading rest = grade();
  EXPECT_EQ(rest.kept, 2U);
  EXPECT_EQ(rest.judged, 1U);
  for (const char* id : {"ada", "grace", "alan"}) EXPECT_EQ(row(rest, id, 2).points, 10);
}

TEST_F(CourseGrading, WhatIsNobodysIsToldAndChangesNoRow) {
  make_course({.folder = test::new_folder() / "other",
               .settings = {.name = "x", .labs = {{2, {}}}},
               .students = {"bob"}});
  const Student bob("bob", course_.secret);
  const Lab lab = make_lab(2, bob);
  fs::create_directories(course_.submissions() / "lab-02");
  test::write_file(course_.submissions() / "lab-02/answers.toml",
                   answers_text(lab, bob, right_answers(lab)));
  hand_in("elsewhere/lab-01", "ada", 1);
  test::write_file(course_.submissions() / "elsewhere/lab-01/answers.toml", "?");
  const Grading grading = grade();
  ASSERT_EQ(grading.unassigned.size(), 2U);
  EXPECT_THAT(grading.unassigned[0].reason, HasSubstr("nobody's name is on it"));
  EXPECT_THAT(grading.unassigned[1].reason, HasSubstr("'bob' is not in the course"));
  EXPECT_EQ(row(grading, "ada", 1).status, RowStatus::missing);
}

TEST_F(CourseGrading, DoesNotSearchItsOwnFolder) {
  EXPECT_THROW(find_submissions(course_, folder_), InputError);
  EXPECT_THROW(find_submissions(course_, folder_.parent_path()), InputError);
  EXPECT_THROW(find_submissions(course_, folder_ / "nowhere"), InputError);
}

TEST_F(CourseGrading, TheGradebookIsATableForOtherPrograms) {
  hand_in("ada/lab-01", "ada", 1, {{"1.1", "12.5"}});
  submitted("ada,1,2026-11-03 10:00\n");
  const std::string csv = gradebook_csv(grade());
  EXPECT_THAT(csv, HasSubstr("student,lab,points,of,late_days,deduction,final,status,note\n"
                             "ada,1,8,9,1,0.8,7.2,graded,cannot be read: 1.1; handed in "
                             "2026-11-03 10:00 +00:00\n"
                             "ada,2,0,10,0,0,0,missing,nothing was handed in\n"));
  EXPECT_THAT(gradebook_json(course_, grade()),
              AllOf(HasSubstr("\"schema\": \"fuseline.gradebook/1\""),
                    HasSubstr("\"deduction\": 0.8"), HasSubstr("\"place\": \"ada/lab-01\"")));
}

}  // namespace
}  // namespace fuseline::lab
