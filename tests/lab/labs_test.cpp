// Properties of all labs, for several students.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "lab/workspace.h"
#include "model/reference.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class EveryLab : public ::testing::TestWithParam<int> {
 protected:
  // Of several students, made once.
  static const std::vector<Lab>& made() {
    static std::map<int, std::vector<Lab>> all;
    std::vector<Lab>& labs = all[GetParam()];
    if (labs.empty())
      for (const char* id : {"somebody", "ada", "grace", "x7", "edsger@tue.example"})
        labs.push_back(make_lab(GetParam(), Student(id)));
    return labs;
  }
};

TEST_P(EveryLab, HasTasksWithPointsAndHints) {
  for (const Lab& lab : made()) {
    EXPECT_EQ(lab.number, GetParam());
    EXPECT_GE(lab.tasks.size(), 6U);
    EXPECT_LE(lab.tasks.size(), 10U);
    int k = 0;
    for (const Task& task : lab.tasks) {
      EXPECT_EQ(task.id, std::to_string(GetParam()) + "." + std::to_string(++k));
      EXPECT_GT(task.points, 0) << task.id;
      EXPECT_FALSE(task.hints.empty()) << task.id;
      EXPECT_FALSE(task.text.empty()) << task.id;
    }
  }
}

TEST_P(EveryLab, EveryNumberIsRightAsItsKeyAndWrongAsItsMistakes) {
  for (const Lab& lab : made()) {
    for (const Task& task : lab.tasks) {
      const auto* key = std::get_if<NumberKey>(&task.key);
      if (key == nullptr) continue;
      ASSERT_TRUE(std::isfinite(key->value)) << task.id;
      ASSERT_FALSE(key->mistakes.empty()) << task.id;
      const auto parsed = parse_quantity(test::right_answer(task), key->dimension);
      ASSERT_TRUE(std::holds_alternative<Quantity>(parsed)) << task.id;
      EXPECT_EQ(judge_number(*key, std::get<Quantity>(parsed)).verdict, Verdict::right) << task.id;
      for (const Mistake& m : key->mistakes) {
        const TaskResult got = judge_number(*key, {m.value, key->unit});
        EXPECT_EQ(got.verdict, Verdict::wrong) << task.id << ": " << m.diagnosis;
        EXPECT_FALSE(got.diagnosis.empty()) << task.id;
      }
      // The first one, which the shipped wrong answers make, is told by its own words.
      EXPECT_EQ(judge_number(*key, {key->mistakes[0].value, key->unit}).diagnosis,
                key->mistakes[0].diagnosis)
          << task.id;
    }
  }
}

TEST_P(EveryLab, EveryChoiceHasOneRightOptionThatTheTextOffers) {
  for (const Lab& lab : made()) {
    for (const Task& task : lab.tasks) {
      const auto* key = std::get_if<ChoiceKey>(&task.key);
      if (key == nullptr) continue;
      int right = 0;
      std::set<std::string> words;
      for (const Option& o : key->options) {
        words.insert(o.word);
        if (o.diagnosis.empty()) ++right;
        EXPECT_EQ(o.word.size() == 1, !o.text.empty()) << task.id;
      }
      EXPECT_EQ(right, 1) << task.id;
      EXPECT_EQ(words.size(), key->options.size()) << task.id;
    }
  }
}

TEST_P(EveryLab, AnUntouchedFolderParsesAndScoresNothing) {
  const Lab lab = make_lab(GetParam(), test::somebody());
  const auto folder = test::new_folder();
  test::write_file(folder / "answers.toml", answers_text(lab, test::somebody()));
  const Answers answers = read_answers(folder / "answers.toml", lab);
  for (const Task& task : lab.tasks) {
    const bool in_a_file = !file_of(task).empty();
    EXPECT_EQ(answers.by_task.at(task.id).text.empty(), !in_a_file) << task.id;
  }
}

// docs/labs shows every lab as a student `example` gets it. After an intended change:
// FUSELINE_UPDATE_GOLDEN=1 lab_tests, then read the difference.
TEST_P(EveryLab, TheDocumentationShowsItAsItIs) {
  const Student example("example");
  const Lab lab = make_lab(GetParam(), example);
  const auto folder = test::source_dir() / "docs/labs" / lab.folder;
  const std::map<std::string, std::string> shown = {{"tasks.md", task_sheet(lab, example)},
                                                    {"answers.toml", answers_text(lab, example)}};
  for (const auto& [name, text] : shown) {
    if (std::getenv("FUSELINE_UPDATE_GOLDEN") != nullptr) {
      test::write_file(folder / name, text);
    }
    EXPECT_EQ(test::read_file(folder / name), text) << folder / name;
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "README.md"));
}

// What a mistake gives is far from what is right, or it would pass: on some shape at least.
TEST_P(EveryLab, EveryMistakeOfAFunctionChangesItsResult) {
  for (const Lab& lab : made()) {
    for (const Task& task : lab.tasks) {
      const auto* key = std::get_if<FunctionKey>(&task.key);
      if (key == nullptr) continue;
      std::set<std::string> known, seen;
      for (const FunctionCase& c : key->cases) {
        for (const ValueMistake& m : c.mistakes) {
          known.insert(m.diagnosis);
          const auto want = std::ranges::find(c.matrices, m.target, &CaseMatrix::name);
          ASSERT_NE(want, c.matrices.end());
          if (!disagreement(m.values, want->values, 4 * want->tolerance).empty()) {
            seen.insert(m.diagnosis);
          }
        }
      }
      EXPECT_FALSE(known.empty()) << task.id;
      EXPECT_EQ(seen, known) << task.id;
    }
  }
}

// Whoever knows no more than how long the options are, or which letter they have, gains nothing.
TEST(LabChoices, LengthAndLetterTellNothing) {
  int choices = 0, longest = 0, shortest = 0;
  double by_chance = 0;
  std::map<std::string, int> letters;
  constexpr int kIds = 6;
  for (int number = 0; number < lab_count(); ++number) {
    for (int i = 0; i < kIds; ++i) {
      const Lab lab = make_lab(number, Student("choices" + std::to_string(i)));
      for (const Task& task : lab.tasks) {
        const auto* key = std::get_if<ChoiceKey>(&task.key);
        if (key == nullptr || key->options.front().text.empty()) continue;
        std::size_t right = 0, least = SIZE_MAX, most = 0, wrong_least = SIZE_MAX, wrong_most = 0;
        for (const Option& o : key->options) {
          least = std::min(least, o.text.size());
          most = std::max(most, o.text.size());
          if (o.diagnosis.empty()) {
            right = o.text.size();
            ++letters[o.word];
          } else {
            wrong_least = std::min(wrong_least, o.text.size());
            wrong_most = std::max(wrong_most, o.text.size());
          }
        }
        if (i > 0) continue;  // the texts are the same for everybody
        EXPECT_LE(most * 4, least * 5) << task.id << ": the options' lengths are too far apart";
        ++choices;
        by_chance += 1.0 / static_cast<double>(key->options.size());
        longest += right > wrong_most ? 1 : 0;
        shortest += right < wrong_least ? 1 : 0;
      }
    }
  }
  EXPECT_GE(choices, 14);
  EXPECT_LE(longest, std::ceil(by_chance)) << "of " << choices;
  EXPECT_LE(shortest, std::ceil(by_chance)) << "of " << choices;
  // One in three each, but for the choice that has a letter d.
  const int all = choices * kIds;
  for (const char* letter : {"a", "b", "c"}) {
    EXPECT_GT(letters[letter] * 5, all) << letter;
    EXPECT_LT(letters[letter] * 2, all) << letter;
  }
}

INSTANTIATE_TEST_SUITE_P(Labs, EveryLab, ::testing::Range(0, lab_count()));

TEST(Labs, ShapesDependOnTheStudentAndTheSecretAlone) {
  std::set<std::string> sheets;
  for (const char* id : {"ada", "grace", "alan", "x7"}) {
    const Student student(id);
    const std::string sheet = make_lab(1, student).intro;
    EXPECT_EQ(sheet, make_lab(1, student).intro);
    sheets.insert(sheet);
  }
  EXPECT_GE(sheets.size(), 3U);
  // Written down, so that another machine must agree.
  EXPECT_THAT(
      make_lab(1, Student("ada")).intro,
      StartsWith(
          "Your activations: M = 6,144 rows of width D = 2,560, feed-forward width F = 11,264"));
  const Student course("ada", CourseSecret::from_text("the secret of some course"));
  EXPECT_NE(make_lab(1, course).intro, make_lab(1, Student("ada")).intro);
}

TEST(Labs, TheRightLetterDependsOnTheStudent) {
  std::set<std::string> letters;
  for (int i = 0; i < 20 && letters.size() < 4; ++i) {
    const Lab lab = make_lab(5, Student("s" + std::to_string(i)));
    letters.insert(test::right_answer(lab.tasks[5]));
  }
  EXPECT_EQ(letters, (std::set<std::string>{"a", "b", "c", "d"}));
}

TEST(Labs, TheQuestionWorthKeepingHasItsNumbers) {
  const Lab lab = make_lab(5, test::somebody());
  const auto task = std::ranges::find(lab.tasks, "5.6", &Task::id);
  ASSERT_NE(task, lab.tasks.end());
  EXPECT_THAT(task->text, HasSubstr("33-fold"));
  EXPECT_THAT(task->text, HasSubstr("9.5-fold on an H100 and 4.9-fold on an A100"));
}

TEST(Labs, RefusesAnUnknownLab) {
  EXPECT_THROW(make_lab(lab_count(), test::somebody()), InputError);
  EXPECT_THROW(make_lab(-1, test::somebody()), InputError);
}

NumberKey bytes(double value) { return {value, Dimension::bytes, "MB", 3, {}}; }

TEST(JudgedNumber, TellsMiBFromMB) {
  EXPECT_THAT(judge_number(bytes(50e6), {50.0 * 1024 * 1024, "MiB"}).diagnosis,
              HasSubstr("the number is in MB, the unit says MiB"));
  EXPECT_THAT(judge_number(bytes(50.0 * 1024 * 1024), {50e6, "MB"}).diagnosis,
              HasSubstr("the number is in MiB, the unit says MB"));
}

TEST(JudgedNumber, TellsBitsPrefixesAndRounding) {
  EXPECT_THAT(judge_number(bytes(50e6), {400e6, "MB"}).diagnosis, HasSubstr("bits"));
  EXPECT_THAT(judge_number(bytes(50e6), {50e9, "GB"}).diagnosis, HasSubstr("prefix"));
  EXPECT_THAT(judge_number(bytes(50e6), {50.6e6, "MB"}).diagnosis, HasSubstr("significant"));
  EXPECT_THAT(judge_number(bytes(50e6), {1e6, "MB"}).diagnosis, HasSubstr("too small"));
  EXPECT_EQ(judge_number(bytes(50e6), {50.2e6, "MB"}).verdict, Verdict::right);
  EXPECT_EQ(judge_number(bytes(50e6), {-50e6, "MB"}).verdict, Verdict::wrong);
  EXPECT_EQ(judge_number(bytes(50e6), {0, "MB"}).verdict, Verdict::wrong);
}

}  // namespace
}  // namespace fuseline::lab
