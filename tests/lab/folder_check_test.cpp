// Whose folder it is, and what a folder of somebody else is worth.
#include "lab/folder_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "lab/workspace.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kSecretText = "the secret of some course";

// A student's folder of a lab with right answers.
fs::path right_folder(int number, const Student& student) {
  const fs::path folder = test::new_folder() / "staff";
  make_staff_folders(make_lab(number, student), student, folder, test::solutions(number));
  return folder / "right";
}

void replace(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = test::read_file(file);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  test::write_file(file, text.replace(at, from.size(), to));
}

// No point, a row for every task, and the reason.
void expect_nothing(const LabResult& result, int number, const std::string& reason) {
  EXPECT_EQ(result.points(), 0);
  EXPECT_EQ(result.tasks.size(), make_lab(number, test::somebody()).tasks.size());
  EXPECT_EQ(result.of(), points_of(make_lab(number, test::somebody())));
  for (const TaskResult& t : result.tasks) EXPECT_EQ(t.verdict, Verdict::unjudged);
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_THAT(result.errors[0], HasSubstr(reason));
}

TEST(FolderCheck, AnothersFolderIsWorthNothing) {
  for (int number = 0; number < lab_count(); ++number) {
    const fs::path ada = right_folder(number, Student("ada"));
    expect_nothing(check_folder({.folder = ada, .lab = number, .student = "grace"}), number,
                   "this folder is another student's: 'grace' was expected");
    replace(ada / "answers.toml", "student = \"ada\"", "student = \"grace\"");
    expect_nothing(check_folder({.folder = ada, .lab = number, .student = std::nullopt}), number,
                   "was not started for student 'grace'");
  }
}

// Who starts a folder and fills it with another's answers has other numbers and other letters. What
// is the same for everybody (a count of kernels, a letter in three by chance) stays right.
TEST(FolderCheck, AnothersAnswersInOnesOwnFolderAreMostlyWrong) {
  const Student ada("ada"), grace("grace");
  int points = 0, of = 0;
  for (int number = 0; number < lab_count(); ++number) {
    const Lab lab = make_lab(number, grace);
    const fs::path folder = test::new_folder() / "own";
    make_workspace(lab, grace, folder);
    test::write_file(folder / "answers.toml",
                     answers_text(lab, grace, right_answers(make_lab(number, ada))));
    for (const TaskResult& t : check_folder({.folder = folder, .lab = {}, .student = {}}).tasks) {
      if (t.answer == "stub.cpp" || t.answer == "plan.toml" || t.answer == "program.fuse") continue;
      points += t.points;
      of += t.of;
    }
  }
  EXPECT_LT(points * 5, of * 2) << points << " of " << of;
}

// The functions too: every student's holds a factor of the student's own.
TEST(SlowFolderCheck, AnothersFunctionIsWrong) {
  const Student ada("ada"), grace("grace");
  for (const int number : {3, 4, 5, 6, 11}) {
    const Lab lab = make_lab(number, grace);
    const fs::path folder = test::new_folder() / "own";
    make_workspace(lab, grace, folder);
    test::write_file(folder / "stub.cpp", test::right_function(number, ada));
    const LabResult result = check_folder({.folder = folder, .lab = {}, .student = {}});
    EXPECT_EQ(result.tasks.back().verdict, Verdict::wrong);
    EXPECT_THAT(result.tasks.back().diagnosis, HasSubstr("differs from the fp64 reference"));
  }
}

TEST(FolderCheck, ACoursesFolderNeedsItsSecret) {
  const CourseSecret secret = CourseSecret::from_text(kSecretText);
  const fs::path folder = right_folder(2, Student("ada", secret));
  EXPECT_TRUE(check_folder({.folder = folder, .lab = 2, .student = {}, .secret = secret}).passed());
  expect_nothing(check_folder({.folder = folder, .lab = 2, .student = {}}), 2,
                 "another secret than 'self-study'");
  // Nor does it help to say that it is self-study.
  replace(folder / "answers.toml", secret.name(), "self-study");
  expect_nothing(check_folder({.folder = folder, .lab = 2, .student = {}}), 2, "was not started");
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(test::read_file(entry.path()).find(kSecretText), std::string::npos) << entry.path();
  }
}

TEST(FolderCheck, ATagIsOfOneLab) {
  const fs::path folder = right_folder(1, Student("ada"));
  replace(folder / "answers.toml", "lab = 1", "lab = 2");
  expect_nothing(check_folder({.folder = folder, .lab = 2, .student = {}}), 2, "was not started");
}

TEST(FolderCheck, AnUnreadableFileIsARowForEveryTask) {
  const fs::path folder = right_folder(1, Student("ada"));
  test::write_file(folder / "answers.toml", "lab = 1\nstudent = \"ada\n");
  expect_nothing(check_folder({.folder = folder, .lab = 1, .student = {}}), 1, "answers.toml:2");
  fs::remove(folder / "answers.toml");
  EXPECT_EQ(check_folder({.folder = folder, .lab = 1, .student = {}}).tasks.size(), 9U);
}

// A link could show any file that the checker can read; a FIFO would hang it.
TEST(FolderCheck, ReadsPlainFilesOnly) {
  for (const char* name : {"answers.toml", "stub.cpp"}) {
    const fs::path linked = right_folder(3, Student("ada"));
    fs::remove(linked / name);
    fs::create_symlink("/dev/zero", linked / name);
    const fs::path fifo = right_folder(3, Student("ada"));
    fs::remove(fifo / name);
    ASSERT_EQ(mkfifo((fifo / name).c_str(), 0600), 0);
    for (const fs::path& folder : {linked, fifo}) {
      const LabResult result = check_folder({.folder = folder, .lab = 3, .student = {}});
      ASSERT_EQ(result.errors.size(), 1U);
      EXPECT_THAT(result.errors[0], HasSubstr(std::string(name) + ": is no plain file"));
      EXPECT_EQ(result.tasks.size(), 9U);
    }
  }
}

TEST(FolderCheck, RefusesASecretInsideTheFolder) {
  const fs::path folder = right_folder(1, Student("ada"));
  test::write_file(folder / "key.txt", std::string(kSecretText) + "\n");
  EXPECT_THROW(check_folder({.folder = folder,
                             .lab = 1,
                             .student = {},
                             .secret = CourseSecret::from_file(folder / "key.txt")}),
               InputError);
}

std::string file_refusal(const fs::path& file) {
  try {
    static_cast<void>(CourseSecret::from_file(file));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CourseSecret, ComesFromAFileThatIsLongEnough) {
  const fs::path folder = test::new_folder();
  test::write_file(folder / "short", "passw0rd\n");
  EXPECT_THAT(file_refusal(folder / "short"),
              AllOf(HasSubstr("8 characters"), HasSubstr("at least 16")));
  EXPECT_EQ(file_refusal(folder / "short").find("passw0rd"), std::string::npos);
  EXPECT_THAT(file_refusal(folder / "none"), HasSubstr("no file"));
  EXPECT_THAT(file_refusal("/dev/zero"), HasSubstr("no file"));
  test::write_file(folder / "long", std::string(5000, 'x'));
  EXPECT_NE(file_refusal(folder / "long"), "accepted");
  // The line's end does not count.
  test::write_file(folder / "unix", std::string(kSecretText) + "\n");
  test::write_file(folder / "dos", std::string(kSecretText) + "\r\n");
  EXPECT_EQ(CourseSecret::from_file(folder / "unix").tag("ada", 1),
            CourseSecret::from_text(kSecretText).tag("ada", 1));
  EXPECT_EQ(CourseSecret::from_file(folder / "dos").name(),
            CourseSecret::from_text(kSecretText).name());
}

TEST(CourseSecret, IsTheOptionsElseTheEnvironmentsElseSelfStudys) {
  const fs::path folder = test::new_folder();
  test::write_file(folder / "one", "one secret, long enough");
  test::write_file(folder / "two", "another one, long enough");
  EXPECT_TRUE(CourseSecret::chosen(std::nullopt).is_self_study());
  setenv(kSecretVariable, (folder / "one").c_str(), 1);
  EXPECT_EQ(CourseSecret::chosen(std::nullopt).file(), folder / "one");
  EXPECT_EQ(CourseSecret::chosen((folder / "two").string()).file(), folder / "two");
  unsetenv(kSecretVariable);
  EXPECT_FALSE(CourseSecret::from_text("self-study").is_self_study());
}

}  // namespace
}  // namespace fuseline::lab
