#include "lab/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The first error of the file's text, with one answer of lab 1 changed; "accepted" when there is
// none.
std::string refusal(const std::string& text) {
  const auto file = test::new_folder() / "answers.toml";
  test::write_file(file, text);
  try {
    for (const auto& [id, answer] : read_answers(file, make_lab(1, test::somebody())).by_task) {
      if (answer.problem) return format_problem(*answer.problem);
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

constexpr const char* kHead = "lab = 1\nstudent = \"me\"\nsecret = \"self-study\"\ntag = \"0\"\n";

std::string with(const std::string& id, const std::string& answer) {
  return answers_text(make_lab(1, test::somebody()), test::somebody(), {{id, answer}});
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
              AllOf(HasSubstr("answers.toml:10"), HasSubstr("1.1"), HasSubstr("unit is missing")));
  EXPECT_THAT(refusal(with("1.1", "12.5 ms")), HasSubstr("unit of time"));
  EXPECT_THAT(refusal(with("1.1", "12.5 Mib")), HasSubstr("did you mean 'MiB'"));
}

TEST(Answers, RefuseWhatIsNotOffered) {
  EXPECT_THAT(refusal(with("1.9", "d")), AllOf(HasSubstr("1.9"), HasSubstr("a, b, c")));
}

TEST(Answers, RefuseBareNumbersAndUnknownTasks) {
  const std::string head = std::string(kHead) + "[answers]\n";
  EXPECT_THAT(refusal(head + "\"1.1\" = 12.5\n"), HasSubstr("in quotes"));
  EXPECT_THAT(refusal(head + "\"1.77\" = \"1 MB\"\n"), HasSubstr("unknown field"));
  EXPECT_THAT(refusal(head + "\"1.1\" = \"1 MB\"\n"), HasSubstr("1.2: the field is missing"));
}

TEST(Answers, RefuseAnotherLabAndOddFiles) {
  const std::string head = kHead;
  EXPECT_THAT(refusal("lab = 2" + head.substr(7) + "[answers]\n"), HasSubstr("another lab"));
  EXPECT_THAT(refusal("lab = 99" + head.substr(7) + "[answers]\n"), HasSubstr("too large"));
  EXPECT_THAT(refusal("lab = 1\nstudent = \"a b\"\n[answers]\n"), HasSubstr("student"));
  EXPECT_THAT(refusal("lab = 1\nstudent = \"me\"\n[answers]\n"), HasSubstr("secret"));
  EXPECT_THAT(refusal("lab = 1\nstudent = \"me\"\nsecret = \"self-study\"\n[answers]\n"),
              HasSubstr("tag"));
  EXPECT_THAT(refusal(head), HasSubstr("answers"));
  EXPECT_THAT(refusal("lab = \n"), HasSubstr(":1"));
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
}

// One that cannot be read leaves the others as they are.
TEST(Answers, AreReadBesideOnesThatCannotBe) {
  const Lab lab = make_lab(1, test::somebody());
  const auto file = test::new_folder() / "answers.toml";
  test::write_file(
      file, answers_text(lab, test::somebody(), {{"1.1", "12.5"}, {"1.3", "3 MB"}, {"1.9", "q"}}));
  const Answers answers = read_answers(file, lab);
  EXPECT_TRUE(answers.by_task.at("1.1").problem.has_value());
  EXPECT_TRUE(answers.by_task.at("1.9").problem.has_value());
  EXPECT_FALSE(answers.by_task.at("1.3").problem.has_value());
  EXPECT_EQ(answers.by_task.at("1.3").quantity.value, 3e6);
}

}  // namespace
}  // namespace fuseline::lab
