// A student's file of programs: what is right, what is wrong and why, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/error.h"
#include "lab/workspace.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Task 10.7, which asks for act, or 10.8, which asks for the rows' largest numbers too.
const ProgramKey& program_key(bool largest) {
  static const Lab lab = make_lab(10, test::somebody());
  return std::get<ProgramKey>(lab.tasks[largest ? 7 : 6].key);
}

TaskResult judged(const ProgramKey& key, const std::string& text) {
  const fs::path folder = test::new_folder();
  test::write_file(folder / key.file, text);
  return judge_program(key, folder);
}

// The file of task 10.7 with another text in place of one.
TaskResult changed(const std::string& from, const std::string& to) {
  std::string text = program_key(false).wanted;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return judged(program_key(false), text.replace(at, from.size(), to));
}

TEST(ProgramCheck, TheLabsOwnProgramsAreRight) {
  for (const bool largest : {false, true}) {
    const TaskResult r = judged(program_key(largest), program_key(largest).wanted);
    EXPECT_EQ(r.verdict, Verdict::right) << r.diagnosis;
    EXPECT_THAT(r.diagnosis, HasSubstr("agrees with fp64"));
  }
  // The file with both outputs is right for the first task as well, in its bytes too.
  EXPECT_EQ(judged(program_key(false), program_key(true).wanted).verdict, Verdict::right);
}

TEST(ProgramCheck, EveryKnownMistakeIsToldByItsOwnWords) {
  for (const bool largest : {false, true}) {
    const ProgramKey& key = program_key(largest);
    EXPECT_GE(key.mistakes.size(), 6U);
    for (const ProgramKey::KnownMistake& m : key.mistakes) {
      const TaskResult r = judged(key, m.text);
      EXPECT_EQ(r.verdict, Verdict::wrong);
      EXPECT_THAT(r.diagnosis, AllOf(HasSubstr("differs from fp64"), HasSubstr(m.diagnosis)));
    }
  }
}

// The nearest factors are a sixteenth apart: somebody else's is seen.
TEST(ProgramCheck, AnotherStudentsFactorIsWrong) {
  const std::string mine = fmt::format("sigmoid({:g} * z)", program_key(false).factor);
  const std::string other = fmt::format("sigmoid({:g} * z)", program_key(false).factor + 1.0 / 16);
  EXPECT_THAT(changed(mine, other).diagnosis, HasSubstr("differs from fp64"));
}

TEST(ProgramCheck, WhatWasNotWrittenIsNotAnswered) {
  const TaskResult r = judged(program_key(false), program_key(false).head);
  EXPECT_EQ(r.verdict, Verdict::unanswered) << r.diagnosis;
  EXPECT_THROW(judge_program(program_key(false), test::new_folder()), InputError);
}

TEST(ProgramCheck, AnotherOrderOfLinesIsAsRight) {
  const TaskResult r = changed("  bias = load_cols b[1,F]\n  biased = scaled + bias\n",
                               "  k = load_cols b[1,F]\n  biased = k + scaled\n");
  EXPECT_EQ(r.verdict, Verdict::right) << r.diagnosis;
}

TEST(ProgramCheck, IllegalProgramsAreWrongAndSayTheirRule) {
  const TaskResult r =
      changed("  store act[M,F] = o\n", "  m = row_max(o)\n  store act[M,F] = o\n");
  EXPECT_EQ(r.verdict, Verdict::wrong);
  EXPECT_THAT(r.diagnosis, AllOf(HasSubstr("not legal: line "), HasSubstr("[whole-row]")));
  EXPECT_THAT(changed("swish(biased)", "swoosh(biased)").diagnosis, HasSubstr("not legal"));
  EXPECT_EQ(changed("fuse 1", "fuse 99").verdict, Verdict::wrong);
}

TEST(ProgramCheck, TheTensorsStayAsTheyWereGiven) {
  EXPECT_THAT(changed("weight b[1,F], fp32", "weight b[1,F]").diagnosis,
              HasSubstr("'b' was given as"));
  EXPECT_THAT(changed("input r[M,F]", "input answer[M,F]\ninput r[M,F]").diagnosis,
              HasSubstr("reads 'answer', which nobody gives"));
  EXPECT_THAT(judged(program_key(true), program_key(false).wanted).diagnosis,
              HasSubstr("stores no 'largest' yet: output largest["));
  EXPECT_THAT(changed("output act[M,F], fp32", "output act[M,F]").diagnosis,
              HasSubstr("'act' has to be an output"));
}

// The checker executes the file, so a file may not ask for more than a moment of it.
TEST(ProgramCheck, LargeTensorsAreRefused) {
  EXPECT_THAT(changed("input r[M,F]", "activation big[1000000,1000000]\ninput r[M,F]").diagnosis,
              HasSubstr("leave the sizes as they were given"));
  EXPECT_THAT(changed("size M = ", "size Z = 1000000, M = ").verdict, Verdict::right);
}

TEST(ProgramCheck, AProductThatGoesToMemoryMovesTooMuch) {
  const std::string text = program_key(false).wanted;
  const std::size_t at = text.find("  rows = load_rows");
  ASSERT_NE(at, std::string::npos);
  const TaskResult r =
      judged(program_key(false),
             text.substr(0, at).replace(text.find("\nlet"), 1, "\nactivation kept[M,F], fp32\n") +
                 "  store kept[M,F] = y\n\nprogram rest\n  for each tile of [M, F]\n"
                 "  y = load kept[M,F]\n" +
                 text.substr(at));
  EXPECT_EQ(r.verdict, Verdict::wrong);
  EXPECT_THAT(r.diagnosis, HasSubstr("right, but"));
}

}  // namespace
}  // namespace fuseline::lab
