// The solutions in docs/labs/staff: right ones pass, wrong ones fail with their diagnosis, which
// stands in diagnoses.txt. After an intended change: FUSELINE_UPDATE_GOLDEN=1 lab_tests writes
// answers and diagnoses again (functions and plans are written by hand), then read the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;

bool updating() { return std::getenv("FUSELINE_UPDATE_GOLDEN") != nullptr; }

fs::path staff_folder(int number) {
  return test::source_dir() / "docs/labs/staff" / fmt::format("{:02}", number);
}

// Each task that is not right, and why.
std::string diagnoses(const LabResult& result) {
  std::string text;
  for (const TaskResult& t : result.tasks) {
    if (t.verdict != Verdict::right) text += fmt::format("{} {}\n", t.id, t.diagnosis);
  }
  return text;
}

// The answers that belong into a folder, by its name.
std::string answers_for(const Lab& lab, const std::string& folder) {
  const auto answers = folder == "wrong-numbers"   ? test::with_wrong_numbers(lab)
                       : folder == "wrong-choices" ? test::with_wrong_choices(lab)
                                                   : test::right_answers(lab);
  return answers_text(lab, Student(), answers);
}

// Writes answers, and in folders without a function or plan of their own those of `right`.
void update(const Lab& lab, const fs::path& staff) {
  for (const char* name : {"right", "wrong-numbers", "wrong-choices"}) {
    fs::create_directories(staff / name);
  }
  for (const auto& entry : fs::directory_iterator(staff)) {
    const std::string name = entry.path().filename().string();
    test::write_file(entry.path() / "answers.toml", answers_for(lab, name));
    for (const char* file : {"stub.cpp", "plan.toml"}) {
      if (!fs::exists(staff / "right" / file) || fs::exists(entry.path() / file)) continue;
      fs::copy_file(staff / "right" / file, entry.path() / file);
    }
    if (name != "right") {
      test::write_file(entry.path() / "diagnoses.txt", diagnoses(test::check(entry.path())));
    }
  }
}

class SlowStaffSolutions : public ::testing::TestWithParam<int> {};

TEST_P(SlowStaffSolutions, RightOnesPassAndWrongOnesFailWithTheirDiagnosis) {
  const Lab lab = make_lab(GetParam(), Student());
  const fs::path staff = staff_folder(GetParam());
  if (updating()) update(lab, staff);
  const LabResult right = test::check(staff / "right");
  EXPECT_EQ(diagnoses(right), "");
  EXPECT_TRUE(right.passed());
  EXPECT_EQ(right.points(), points_of(lab));
  int wrong = 0;
  for (const auto& entry : fs::directory_iterator(staff)) {
    if (entry.path().filename() == "right") continue;
    SCOPED_TRACE(entry.path());
    ++wrong;
    const LabResult result = test::check(entry.path());
    EXPECT_FALSE(result.passed());
    EXPECT_EQ(diagnoses(result), test::read_file(entry.path() / "diagnoses.txt"));
  }
  EXPECT_GE(wrong, 2);
}

// Every number task and every choice is answered wrongly somewhere, and nothing else is.
TEST_P(SlowStaffSolutions, WrongAnswersFailWhereTheyAreWrong) {
  const Lab lab = make_lab(GetParam(), Student());
  std::set<std::string> failed, wanted;
  for (const char* name : {"wrong-numbers", "wrong-choices"}) {
    for (const TaskResult& t : test::check(staff_folder(GetParam()) / name).tasks) {
      if (t.verdict != Verdict::right) failed.insert(t.id);
    }
  }
  for (const Task& task : lab.tasks) {
    if (std::holds_alternative<NumberKey>(task.key) || std::holds_alternative<ChoiceKey>(task.key))
      wanted.insert(task.id);
  }
  EXPECT_EQ(failed, wanted);
}

// The right function passes with another student's hidden shapes too.
TEST_P(SlowStaffSolutions, RightFunctionsPassForAnotherStudent) {
  const Lab lab = make_lab(GetParam(), Student("another"));
  for (const Task& task : lab.tasks) {
    if (const auto* key = std::get_if<FunctionKey>(&task.key)) {
      const TaskResult got = judge_function(*key, staff_folder(GetParam()) / "right");
      EXPECT_EQ(got.verdict, Verdict::right) << got.diagnosis;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Labs, SlowStaffSolutions, ::testing::Range(0, kLabCount));

}  // namespace
}  // namespace fuseline::lab
