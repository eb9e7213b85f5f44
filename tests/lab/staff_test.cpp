// Answers made from a student's keys, with the functions and plans in tests/lab/staff: right ones
// pass, wrong ones fail with their diagnosis, which stands in tests/lab/staff/NN/NAME.txt. After an
// intended change: FUSELINE_UPDATE_GOLDEN=1 lab_tests writes the diagnoses again (functions and
// plans are written by hand), then read the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <fmt/format.h>

#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;

bool updating() { return std::getenv("FUSELINE_UPDATE_GOLDEN") != nullptr; }

// Each task that is not right, and why.
std::string diagnoses(const LabResult& result) {
  std::string text;
  for (const TaskResult& t : result.tasks) {
    if (t.verdict != Verdict::right) text += fmt::format("{} {}\n", t.id, t.diagnosis);
  }
  return text;
}

// A folder with right and wrong folders of a student.
fs::path made(const Lab& lab, const Student& student) {
  const fs::path folder = test::new_folder() / "staff";
  make_staff_folders(lab, student, folder, test::solutions(lab.number));
  return folder;
}

// Every folder of the lab as it is judged, made and judged once for all tests.
const std::map<std::string, LabResult>& judged_folders(const Lab& lab) {
  static std::map<int, std::map<std::string, LabResult>> all;
  std::map<std::string, LabResult>& judged = all[lab.number];
  if (judged.empty())
    for (const auto& entry : fs::directory_iterator(made(lab, test::somebody())))
      judged.emplace(entry.path().filename().string(), test::check(entry.path()));
  return judged;
}

class SlowStaffSolutions : public ::testing::TestWithParam<int> {};

TEST_P(SlowStaffSolutions, RightOnesPassAndWrongOnesFailWithTheirDiagnosis) {
  const Lab lab = make_lab(GetParam(), test::somebody());
  const auto& judged = judged_folders(lab);
  const LabResult& right = judged.at("right");
  EXPECT_EQ(diagnoses(right), "");
  EXPECT_TRUE(right.passed());
  EXPECT_EQ(right.points(), points_of(lab));
  int wrong = 0;
  for (const auto& [name, result] : judged) {
    if (name == "right") continue;
    SCOPED_TRACE(name);
    ++wrong;
    EXPECT_FALSE(result.passed());
    const fs::path golden = test::solutions(GetParam()) / (name + ".txt");
    if (updating()) test::write_file(golden, diagnoses(result));
    EXPECT_EQ(diagnoses(result), test::read_file(golden));
  }
  EXPECT_GE(wrong, 2);
}

// Every number task and every choice is answered wrongly somewhere, and nothing else is.
TEST_P(SlowStaffSolutions, WrongAnswersFailWhereTheyAreWrong) {
  const Lab lab = make_lab(GetParam(), test::somebody());
  std::set<std::string> failed, wanted;
  for (const char* name : {"wrong-numbers", "wrong-choices"}) {
    for (const TaskResult& t : judged_folders(lab).at(name).tasks) {
      if (t.verdict != Verdict::right) failed.insert(t.id);
    }
  }
  for (const Task& task : lab.tasks) {
    if (std::holds_alternative<NumberKey>(task.key) || std::holds_alternative<ChoiceKey>(task.key))
      wanted.insert(task.id);
  }
  EXPECT_EQ(failed, wanted);
}

// Right answers pass with another student's shapes and another secret too.
TEST_P(SlowStaffSolutions, RightOnesPassForAnotherStudentOfACourse) {
  const CourseSecret secret = CourseSecret::from_text("the secret of some course");
  const Student another("another", secret);
  const Lab lab = make_lab(GetParam(), another);
  const fs::path staff = made(lab, another);
  const LabResult got = check_folder(
      {.folder = staff / "right", .lab = GetParam(), .student = "another", .secret = secret});
  EXPECT_EQ(diagnoses(got), "");
  EXPECT_TRUE(got.passed());
}

INSTANTIATE_TEST_SUITE_P(Labs, SlowStaffSolutions, ::testing::Range(0, lab_count()));

}  // namespace
}  // namespace fuseline::lab
