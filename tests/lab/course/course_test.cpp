// A course's folder: what is made, what its files may say, and what is refused.
#include "lab/course/course.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <set>

#include "base/error.h"
#include "lab/answers.h"
#include "lab/course/course_folder.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CourseStart start(const fs::path& folder, std::vector<std::string> students) {
  return {.folder = folder,
          .settings = {.name = "a course", .labs = {{1, {}}, {2, {}}}},
          .students = std::move(students)};
}

std::set<std::string> files_below(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) files.insert(entry.path().lexically_relative(folder).string());
  }
  return files;
}

TEST(CourseFolder, HoldsASecretOfItsOwnAndEverybodysLabs) {
  const fs::path folder = test::new_folder() / "course";
  const CourseFolder made = make_course(start(folder, {"ada", "grace", "ada"}));
  EXPECT_TRUE(made.is_new);
  EXPECT_EQ(made.made, 4U);
  EXPECT_THAT(made.course.students, ElementsAre("ada", "grace"));
  EXPECT_EQ(files_below(folder),
            (std::set<std::string>{
                "course.toml", "secret.txt", "students.csv", "students/ada/lab-01/README.md",
                "students/ada/lab-01/answers.toml", "students/ada/lab-02/README.md",
                "students/ada/lab-02/answers.toml", "students/grace/lab-01/README.md",
                "students/grace/lab-01/answers.toml", "students/grace/lab-02/README.md",
                "students/grace/lab-02/answers.toml"}));
  struct stat secret {};
  ASSERT_EQ(stat((folder / "secret.txt").c_str(), &secret), 0);
  EXPECT_EQ(secret.st_mode & 0777U, 0600U);
  // 192 bits in hexadecimal, and nothing that students get holds them.
  const std::string text = test::read_file(folder / "secret.txt");
  EXPECT_EQ(text.size(), 49U);
  for (const std::string& file : files_below(folder / "students")) {
    EXPECT_EQ(test::read_file(folder / "students" / file).find(text.substr(0, 48)),
              std::string::npos);
  }
  const Answers head = read_answers_head(folder / "students/ada/lab-01/answers.toml");
  EXPECT_EQ(head.tag, CourseSecret::from_file(folder / "secret.txt").tag("ada", 1));
  const fs::path other = test::new_folder() / "course";
  make_course(start(other, {"ada"}));
  EXPECT_NE(test::read_file(other / "secret.txt"), text);
}

TEST(CourseFolder, InitAgainAddsWhatIsMissingAndTouchesNothingElse) {
  const fs::path folder = test::new_folder() / "course";
  make_course(start(folder, {"ada"}));
  test::write_file(folder / "students/ada/lab-01/answers.toml", "mine");
  const std::string secret = test::read_file(folder / "secret.txt");
  fs::remove_all(folder / "students/ada/lab-02");
  const CourseFolder again = make_course(start(folder, {"grace"}));
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.made, 3U);
  EXPECT_EQ(again.there, 1U);
  EXPECT_THAT(again.course.students, ElementsAre("ada", "grace"));
  EXPECT_EQ(test::read_file(folder / "secret.txt"), secret);
  EXPECT_EQ(test::read_file(folder / "students/ada/lab-01/answers.toml"), "mine");
}

TEST(CourseFolder, RefusesWhatWouldLoseSomething) {
  const fs::path used = test::new_folder();
  test::write_file(used / "thesis.tex", "...");
  EXPECT_THROW(make_course(start(used, {"ada"})), InputError);
  EXPECT_EQ(files_below(used), std::set<std::string>{"thesis.tex"});
  EXPECT_THROW(make_course(start(used / "thesis.tex", {"ada"})), InputError);
  EXPECT_THROW(make_course(start(used / "new", {})), InputError);
  EXPECT_FALSE(fs::exists(used / "new"));
  const fs::path folder = test::new_folder() / "course";
  make_course(start(folder, {"ada"}));
  test::write_file(folder / "students.csv", "student,mail\nada,ada@example.org\n");
  EXPECT_THROW(make_course(start(folder, {"grace"})), InputError);
  EXPECT_THAT(test::read_file(folder / "students.csv"), HasSubstr("ada@example.org"));
}

TEST(CourseFolder, AnIdNeverLeavesTheFolder) {
  const fs::path parent = test::new_folder();
  for (const char* id : {"..", ".", ".hidden", "-rf", "@x", "", "a/b", "a b"}) {
    EXPECT_THROW(make_course(start(parent / "course", {id})), InputError) << id;
  }
  EXPECT_TRUE(fs::is_empty(parent));
}

// Of a course.toml with this instead of its text from `from` on.
std::string refusal(const std::string& from, const std::string& to) {
  const fs::path folder = test::new_folder() / "course";
  make_course({.folder = folder,
               .settings = {.name = "a course",
                            .labs = {{1, parse_moment("2026-11-02 23:59", {})}, {2, {}}}},
               .students = {"ada", "grace"}});
  std::string text = test::read_file(folder / "course.toml");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  test::write_file(folder / "course.toml", text.replace(at, from.size(), to));
  try {
    load_course(folder);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CourseFile, ErrorsNameLineFieldValueAndWhatIsAllowed) {
  EXPECT_THAT(refusal("percent_per_day = 10", "percent_per_day = 110"),
              AllOf(HasSubstr("course.toml:8"), HasSubstr("late.percent_per_day"), HasSubstr("110"),
                    HasSubstr("from 0 to 100")));
  EXPECT_THAT(refusal("grace_minutes", "grace_minuts"),
              AllOf(HasSubstr("course.toml:10"), HasSubstr("did you mean 'grace_minutes'")));
  EXPECT_THAT(refusal("deadline = \"2026-11-02 23:59", "deadline = \"2026-11-31 23:59"),
              AllOf(HasSubstr("deadline"), HasSubstr("is no day and time"),
                    HasSubstr("as in \"2026-11-02 23:59\"")));
  EXPECT_THAT(refusal("number = 2", "number = 99"), HasSubstr("number"));
  EXPECT_THAT(refusal("number = 2", "number = 1"), HasSubstr("this lab is there already"));
  EXPECT_THAT(refusal("utc_offset = \"+00:00\"", "utc_offset = \"CET\""),
              HasSubstr("is no offset from UTC"));
  EXPECT_THAT(refusal("course = 1", "course = 2"), HasSubstr("course"));
  const std::string extension =
      "\n[[extension]]\nstudent = \"gracie\"\nlab = 1\ndeadline = "
      "\"2026-11-09 23:59\"\n";
  EXPECT_THAT(refusal("\n# Another deadline", extension + "# Another deadline"),
              AllOf(HasSubstr("is not in the course"), HasSubstr("did you mean 'grace'")));
  EXPECT_THAT(refusal("name = \"a course\"", "name = \"a course"), HasSubstr("course.toml:4"));
  EXPECT_EQ(refusal("days = 5", "days = 0"), "accepted");
}

TEST(CourseFile, AnExtensionIsOfOneStudentAndLab) {
  const fs::path folder = test::new_folder() / "course";
  const auto due = parse_moment("2026-11-02 23:59", {});
  make_course({.folder = folder,
               .settings = {.name = "a course", .labs = {{1, due}, {2, due}}},
               .students = {"ada", "grace"}});
  test::write_file(folder / "course.toml", test::read_file(folder / "course.toml") +
                                               "[[extension]]\nstudent = \"ada\"\nlab = 2\n"
                                               "deadline = \"2026-11-09 23:59\"\n");
  const Course course = load_course(folder);
  EXPECT_EQ(course.deadline("ada", 2), parse_moment("2026-11-09 23:59", {}));
  EXPECT_EQ(course.deadline("ada", 1), due);
  EXPECT_EQ(course.deadline("grace", 2), due);
}

TEST(CourseStudents, ComeFromATableWithMoreColumns) {
  const fs::path file = test::new_folder() / "enrolled.csv";
  test::write_file(file, "name,student\n\"Lovelace, Ada\",ada\n\"Hopper, Grace\",grace\n");
  EXPECT_THAT(read_students(file), ElementsAre("ada", "grace"));
  const auto refused = [&](const std::string& text) {
    test::write_file(file, text);
    try {
      read_students(file);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused("student\nada\nada\n"),
              AllOf(HasSubstr("enrolled.csv:3"), HasSubstr("each student once")));
  EXPECT_THAT(refused("student\n../ada\n"),
              AllOf(HasSubstr("enrolled.csv:2"), HasSubstr("letters, digits")));
  EXPECT_THAT(refused("students\nada\n"), HasSubstr("students"));
}

}  // namespace
}  // namespace fuseline::lab
