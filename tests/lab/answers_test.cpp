#include "lab/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The error of the file's text, with one answer of lab 1 changed; "accepted" when there is none.
std::string refusal(const std::string& text) {
  const auto file = test::new_folder() / "answers.toml";
  test::write_file(file, text);
  try {
    static_cast<void>(read_answers(file, make_lab(1, Student())));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string with(const std::string& id, const std::string& answer) {
  return answers_text(make_lab(1, Student()), Student(), {{id, answer}});
}

TEST(Answers, ReadWhatIsWritten) {
  const Lab lab = make_lab(1, Student("ada"));
  const auto file = test::new_folder() / "answers.toml";
  test::write_file(file, answers_text(lab, Student("ada"), {{"1.1", "12.5 MB"}, {"1.9", " B "}}));
  const Answers answers = read_answers(file, lab);
  EXPECT_EQ(answers.student, "ada");
  EXPECT_EQ(answers.by_task.at("1.1").quantity.value, 12.5e6);
  EXPECT_EQ(answers.by_task.at("1.9").text, "b");
  EXPECT_EQ(answers.by_task.at("1.2").text, "");
}

TEST(Answers, NameTheLineOfAMissingOrWrongUnit) {
  EXPECT_THAT(refusal(with("1.1", "12.5")),
              AllOf(HasSubstr("answers.toml:8"), HasSubstr("1.1"), HasSubstr("unit is missing")));
  EXPECT_THAT(refusal(with("1.1", "12.5 ms")), HasSubstr("unit of time"));
  EXPECT_THAT(refusal(with("1.1", "12.5 Mib")), HasSubstr("did you mean 'MiB'"));
}

TEST(Answers, RefuseWhatIsNotOffered) {
  EXPECT_THAT(refusal(with("1.9", "d")), AllOf(HasSubstr("1.9"), HasSubstr("a, b, c")));
}

TEST(Answers, RefuseBareNumbersAndUnknownTasks) {
  const std::string head = "lab = 1\nstudent = \"me\"\n[answers]\n";
  EXPECT_THAT(refusal(head + "\"1.1\" = 12.5\n"), HasSubstr("in quotes"));
  EXPECT_THAT(refusal(head + "\"1.77\" = \"1 MB\"\n"), HasSubstr("unknown field"));
  EXPECT_THAT(refusal(head + "\"1.1\" = \"1 MB\"\n"), HasSubstr("1.2: the field is missing"));
}

TEST(Answers, RefuseAnotherLabAndOddFiles) {
  EXPECT_THAT(refusal("lab = 2\nstudent = \"me\"\n[answers]\n"), HasSubstr("another lab"));
  EXPECT_THAT(refusal("lab = 9\nstudent = \"me\"\n[answers]\n"), HasSubstr("too large"));
  EXPECT_THAT(refusal("lab = 1\nstudent = \"a b\"\n[answers]\n"), HasSubstr("student"));
  EXPECT_THAT(refusal("lab = 1\nstudent = \"me\"\n"), HasSubstr("answers"));
  EXPECT_THAT(refusal("lab = \n"), HasSubstr(":1"));
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
}

}  // namespace
}  // namespace fuseline::lab
