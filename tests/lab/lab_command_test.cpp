// `fuseline lab` as a student uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "lab/workspace.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct CliRun {
  int status = -1;
  std::string out, err;
};

CliRun lab_command(std::vector<std::string> args) {
  args.insert(args.begin(), "lab");
  std::ostringstream out, err;
  CliRun run;
  run.status = run_cli(args, out, err);
  run.out = out.str();
  run.err = err.str();
  return run;
}

// A started lab in a folder of its own.
fs::path started(int number, const std::string& student = "somebody") {
  fs::path folder = test::new_folder() / "work";
  const CliRun run = lab_command(
      {"start", std::to_string(number), "--student", student, "--dir", folder.string()});
  EXPECT_EQ(run.status, 0) << run.err;
  return folder;
}

CliRun check(int number, const fs::path& folder) {
  return lab_command({"check", std::to_string(number), "--dir", folder.string()});
}

TEST(LabCommand, StartMakesTheFolderOnce) {
  const fs::path folder = started(1);
  EXPECT_TRUE(fs::exists(folder / "README.md"));
  EXPECT_TRUE(fs::exists(folder / "answers.toml"));
  EXPECT_FALSE(fs::exists(folder / "stub.cpp"));
  const CliRun again = lab_command({"start", "1", "--dir", folder.string()});
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("not overwritten"));
}

TEST(LabCommand, StartFillsInTheStudentsShapes) {
  const std::string ada = test::read_file(started(1, "ada") / "README.md");
  EXPECT_EQ(ada, test::read_file(started(1, "ada") / "README.md"));
  EXPECT_NE(ada, test::read_file(started(1, "grace") / "README.md"));
}

TEST(LabCommand, CheckOfAnUntouchedLabFailsHelpfully) {
  for (const int number : {0, 1, 2, 7, 8, 9, 10}) {
    const CliRun run = check(number, started(number));
    EXPECT_EQ(run.status, 1) << number << run.err;
    EXPECT_THAT(run.out, HasSubstr("not answered"));
    EXPECT_THAT(run.out, HasSubstr("next: fuseline lab hint " + std::to_string(number) + ".1"));
  }
}

TEST(SlowLabCommand, CheckOfAnUntouchedFunctionFailsHelpfully) {
  for (const int number : {3, 4, 5, 6, 11}) {
    const CliRun run = check(number, started(number));
    EXPECT_EQ(run.status, 1) << number << run.err;
    EXPECT_THAT(test::one_line(run.out), HasSubstr("nothing is stored to"));
  }
}

TEST(LabCommand, CheckPassesRightAnswersAndWritesResultJson) {
  const fs::path folder = started(2, "ada");
  const Lab lab = make_lab(2, Student("ada"));
  test::write_file(folder / "answers.toml",
                   answers_text(lab, Student("ada"), test::right_answers(lab)));
  const CliRun run = check(2, folder);
  EXPECT_EQ(run.status, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("10 of 10 points"));
  const auto json = nlohmann::json::parse(test::read_file(folder / "result.json"));
  EXPECT_EQ(json.at("schema"), "fuseline.lab/1");
  EXPECT_EQ(json.at("student"), "ada");
  EXPECT_EQ(json.at("points"), 10);
  EXPECT_EQ(json.at("passed"), true);
  EXPECT_EQ(json.at("tasks").size(), lab.tasks.size());
}

TEST(LabCommand, AWrongAnswerGetsItsDiagnosis) {
  const fs::path folder = started(1);
  const Lab lab = make_lab(1, test::somebody());
  auto answers = test::right_answers(lab);
  const auto& key = std::get<NumberKey>(lab.tasks[5].key);  // 1.6
  answers["1.6"] = quantity_text(key.mistakes[0].value, Dimension::bytes, "MB", 4);
  test::write_file(folder / "answers.toml", answers_text(lab, test::somebody(), answers));
  const CliRun run = check(1, folder);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("S counted once: it is written and read"));
  EXPECT_THAT(run.out, HasSubstr("8 of 9 points"));
}

TEST(LabCommand, BadInputIsExitTwo) {
  const fs::path folder = started(1);
  const Lab lab = make_lab(1, test::somebody());
  test::write_file(folder / "answers.toml", answers_text(lab, test::somebody(), {{"1.1", "12.5"}}));
  const CliRun unit = check(1, folder);
  EXPECT_EQ(unit.status, 2);
  EXPECT_THAT(unit.err, AllOf(HasSubstr("answers.toml:10"), HasSubstr("unit is missing")));
  EXPECT_THAT(unit.out, HasSubstr("1.1   0/1     12.5    not judged: the unit is missing"));
  EXPECT_THAT(unit.out, HasSubstr("1.2   0/1             not answered"));
  test::write_file(folder / "answers.toml", "lab = 1\nstudent = \"me\n");
  EXPECT_EQ(check(1, folder).status, 2);
  EXPECT_EQ(check(2, started(1)).status, 2);  // another lab's folder
  EXPECT_EQ(check(1, test::new_folder() / "nowhere").status, 2);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"chek", "1"},
                                             {"start"},
                                             {"start", "99"},
                                             {"start", "one"},
                                             {"check", "1", "2"},
                                             {"start", "1", "--student", "a b"},
                                             {"start", "1", "--dir", "/no/such/folder/x"},
                                             {"hint"},
                                             {"hint", "1.99"},
                                             {"hint", "99.1"},
                                             {"hint", "1.1", "9"},
                                             {"staff", "1"},
                                             {"check", "1", "--secret", "/no/such/file"},
                                             {"report", "--dir", test::new_folder().string()}}) {
    const CliRun run = lab_command(words);
    EXPECT_EQ(run.status, 2) << ::testing::PrintToString(words);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("error"));
  }
  EXPECT_THAT(lab_command({"chek"}).err, HasSubstr("did you mean 'check'"));
}

TEST(SlowLabCommand, AStubThatDoesNotCompileIsExitTwo) {
  const fs::path folder = started(3);
  test::write_file(folder / "stub.cpp", "void add_rms_norm( {\n");
  const CliRun run = check(3, folder);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("stub.cpp"), HasSubstr("does not compile"), HasSubstr("error:")));
  const auto json = nlohmann::json::parse(test::read_file(folder / "result.json"));
  EXPECT_EQ(json.at("tasks").size(), 9U);
  EXPECT_EQ(json.at("tasks").at(8).at("verdict"), "unjudged");
  EXPECT_EQ(json.at("tasks").at(0).at("verdict"), "unanswered");
  EXPECT_THAT(json.at("errors").at(0), HasSubstr("does not compile"));
}

TEST(LabCommand, AnIllegalPlanIsAWrongAnswerAndABrokenFileAnError) {
  const fs::path folder = started(7);
  const std::string plan = test::read_file(folder / "plan.toml");
  const std::size_t at = plan.find("on_chip = []");
  ASSERT_NE(at, std::string::npos);
  const auto with_edges = [&](const std::string& edges) {
    test::write_file(folder / "plan.toml", plan.substr(0, at) + "on_chip = " + edges + "\n");
    return check(7, folder);
  };
  EXPECT_THAT(with_edges("[\"swiglu -> down\"]").out, HasSubstr("not legal: swiglu -> down"));
  EXPECT_THAT(with_edges("[\"swigluu -> down\"]").out, HasSubstr("no such operator"));
  EXPECT_THAT(with_edges("[\"down -> residual2\"]").out, HasSubstr("legal, but"));
  EXPECT_EQ(with_edges("[\"down to residual2\"]").status, 2);
  EXPECT_EQ(with_edges("7").status, 2);
}

TEST(LabCommand, HintsGrowClearer) {
  const CliRun first = lab_command({"hint", "1.6"});
  EXPECT_EQ(first.status, 0);
  EXPECT_THAT(first.out, AllOf(HasSubstr("hint 1 of 3"), HasSubstr("lab hint 1.6 2")));
  EXPECT_NE(lab_command({"hint", "1.6", "3"}).out, first.out);
}

TEST(LabCommand, ReportSumsTheLabsOfAFolder) {
  const fs::path parent = test::new_folder();
  for (const char* n : {"0", "2"}) {
    ASSERT_EQ(
        lab_command({"start", n, "--dir", (parent / ("lab-0" + std::string(n))).string()}).status,
        0);
  }
  const CliRun run = lab_command({"report", "--dir", parent.string()});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, AllOf(HasSubstr("lab-00"), HasSubstr("lab-02"), HasSubstr("0 of 16")));
}

// One stub that does not compile, one missing unit and one torn file leave the others' rows alone.
TEST(SlowLabCommand, ReportHasARowForEveryLab) {
  const fs::path parent = test::new_folder();
  for (const int n : {0, 1, 2, 3}) {
    ASSERT_EQ(lab_command({"start", std::to_string(n), "--student", "ada", "--dir",
                           (parent / default_folder(n)).string()})
                  .status,
              0);
  }
  const Lab two = make_lab(2, Student("ada"));
  test::write_file(parent / "lab-02/answers.toml",
                   answers_text(two, Student("ada"), right_answers(two)));
  test::write_file(parent / "lab-00/answers.toml", "lab = 0\nstudent = \"ada\n");
  auto answers = right_answers(make_lab(1, Student("ada")));
  answers["1.1"] = "12.5";
  test::write_file(parent / "lab-01/answers.toml",
                   answers_text(make_lab(1, Student("ada")), Student("ada"), answers));
  test::write_file(parent / "lab-03/stub.cpp", "void add_rms_norm( {\n");

  const CliRun run = lab_command({"report", "--dir", parent.string()});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, AllOf(HasSubstr("lab-00    0  ?           0/6"),
                             HasSubstr("lab-01    1  ada         8/9  1.1\n"),
                             HasSubstr("lab-02    2  ada       10/10"), HasSubstr("18 of 36")));
  EXPECT_THAT(run.err, AllOf(HasSubstr("lab-00/answers.toml:2"), HasSubstr("unit is missing"),
                             HasSubstr("does not compile")));
  const auto json = nlohmann::json::parse(test::read_file(parent / "result.json"));
  EXPECT_EQ(json.at("schema"), "fuseline.lab-report/1");
  EXPECT_EQ(json.at("points"), 18);
  ASSERT_EQ(json.at("labs").size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json.at("labs").at(i).at("lab"), i);
    EXPECT_GE(json.at("labs").at(i).at("tasks").size(), 6U);
  }
}

TEST(LabCommand, AFolderOfSomebodyElseGetsNoPoints) {
  const fs::path staff = test::new_folder() / "staff";
  ASSERT_EQ(lab_command({"staff", "2", "--student", "ada", "--dir", staff.string()}).status, 0);
  const fs::path right = staff / "right";
  EXPECT_THAT(check(2, right).out, HasSubstr("10 of 10 points"));
  const CliRun run = lab_command({"check", "2", "--dir", right.string(), "--student", "grace"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, HasSubstr("0 of 10 points"));
  EXPECT_THAT(run.err, HasSubstr("this folder is another student's"));
  EXPECT_EQ(nlohmann::json::parse(test::read_file(right / "result.json")).at("points"), 0);
  const CliRun all = lab_command({"report", "--dir", staff.string(), "--student", "grace"});
  EXPECT_EQ(all.status, 2);
  EXPECT_THAT(all.out, HasSubstr("0 of 30 points"));
}

TEST(LabCommand, NobodyHasAnIdThatEverybodyKnows) {
  const auto id_of = [](const fs::path& parent, const char* number) {
    const fs::path folder = parent / (std::string("lab-0") + number);
    EXPECT_EQ(lab_command({"start", number, "--dir", folder.string()}).status, 0);
    return read_answers_head(folder / "answers.toml").student;
  };
  const fs::path one = test::new_folder(), other = test::new_folder();
  const std::string id = id_of(one, "0");
  EXPECT_THAT(id, ::testing::StartsWith("self-"));
  EXPECT_EQ(id_of(one, "1"), id);  // one person's labs lie beside one another
  EXPECT_NE(id_of(other, "0"), id);
}

TEST(LabCommand, ACoursesSecretIsNamedByAnOptionOrTheEnvironment) {
  const fs::path parent = test::new_folder();
  const std::string secret = (parent / "secret.txt").string(), dir = (parent / "lab").string();
  test::write_file(secret, "the secret of some course\n");
  const CliRun start =
      lab_command({"start", "1", "--student", "ada", "--dir", dir, "--secret", secret});
  EXPECT_EQ(start.status, 0) << start.err;
  EXPECT_THAT(start.out, HasSubstr("--secret " + secret));
  EXPECT_EQ(lab_command({"check", "1", "--dir", dir, "--secret", secret}).status, 1);
  const CliRun without = check(1, dir);
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, AllOf(HasSubstr("another secret"), HasSubstr("FUSELINE_LAB_SECRET")));
  setenv(kSecretVariable, secret.c_str(), 1);
  EXPECT_EQ(check(1, dir).status, 1);
  unsetenv(kSecretVariable);
  EXPECT_THAT(lab_command({"--help"}).out, HasSubstr("FUSELINE_LAB_SECRET"));
}

TEST(LabCommand, VerdictsAreShownWhereTheResultCannotBeWritten) {
  const fs::path folder = started(1);
  fs::create_directory(folder / "result.json");
  const CliRun run = check(1, folder);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, HasSubstr("0 of 9 points"));
  EXPECT_THAT(run.err, HasSubstr("result.json"));
}

TEST(SlowLabCommand, WithoutACompilerTheOtherTasksAreJudged) {
  const fs::path folder = started(3);
  const char* before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  setenv("CXX", "no-such-compiler-7", 1);
  const CliRun run = check(3, folder);
  if (before == nullptr) {
    unsetenv("CXX");
  } else {
    setenv("CXX", kept.c_str(), 1);
  }
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.out, HasSubstr("3.1   0/1               not answered"));
  EXPECT_THAT(run.err, HasSubstr("no-such-compiler-7"));
  EXPECT_TRUE(fs::exists(folder / "result.json"));
}

TEST(LabCommand, WhatAStudentWritesIsShownWithoutControlCharacters) {
  const fs::path folder = started(1);
  const Lab lab = make_lab(1, test::somebody());
  test::write_file(folder / "answers.toml",
                   answers_text(lab, test::somebody(), {{"1.1", "12\\u001b[31m MB"}}));
  const CliRun run = check(1, folder);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ((run.out + run.err).find('\033'), std::string::npos);
}

TEST(LabCommand, ListNamesAllLabsAndTheirReadings) {
  const CliRun run = lab_command({"list"});
  EXPECT_EQ(run.status, 0);
  for (int n = 0; n < lab_count(); ++n) {
    EXPECT_THAT(run.out, HasSubstr("docs/labs/" + lab_folder(n) + "/README.md"));
    EXPECT_TRUE(fs::exists(test::source_dir() / "docs/labs" / lab_folder(n) / "README.md"));
  }
  for (const char* verb : {"start", "check", "hint", "report", "staff"}) {
    EXPECT_EQ(lab_command({verb, "--help"}).status, 0);
  }
}

}  // namespace
}  // namespace fuseline::lab
