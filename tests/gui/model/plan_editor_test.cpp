// The text of a run's plan: mistakes with their places, drafts, undo, sessions, files.
#include "gui/model/plan_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "gui/model/command_text.h"
#include "gui/model/run_plan.h"
#include "gui/model/session_file.h"
#include "gui/model/workbench.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

// A workbench with its results, and the plan of its run `coda`.
struct Bench {
  Workbench bench{test::small_document(), [] {}};
  RunId coda;
  Bench() {
    bench.wait();
    coda = bench.document().runs.find("coda")->id;
  }
  [[nodiscard]] PlanEditorText text(RunId run) const {
    return plan_editor_text(bench.document(), bench.results(), run);
  }
  [[nodiscard]] CheckedPlan check(const std::string& text) const {
    return check_plan_text(bench.document().setup, text, "test");
  }
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

int line_of(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

TEST(PlanEditor, APolicysPlanIsATextThatCanBePredicted) {
  const Bench b;
  const PlanEditorText text = b.text(b.coda);
  EXPECT_EQ(text.why_not, "");
  EXPECT_FALSE(text.own);
  EXPECT_FALSE(text.edited());
  EXPECT_THAT(text.text, HasSubstr("plan coda"));
  EXPECT_EQ(text.text.find("\nhash "), std::string::npos);
  const CheckedPlan checked = b.check(text.text);
  EXPECT_TRUE(checked.problems.empty()) << checked.problems.front().text;
  EXPECT_EQ(checked.policy, "coda");
  EXPECT_EQ(checked.kernels.size(), b.bench.results().find(b.coda)->result->plan->kernels.size());
}

TEST(PlanEditor, EveryMistakeHasItsLine) {
  const Bench b;
  const std::string right = b.text(b.coda).text;
  std::string wrong = replaced(right, "rsqrt(m1)", "rsqr(m1)");
  wrong = replaced(wrong, "store attn", "store atn");
  const CheckedPlan checked = b.check(wrong);
  ASSERT_GE(checked.problems.size(), 2U);
  EXPECT_EQ(checked.problems[0].line, line_of(right, "rsqrt(m1)"));
  EXPECT_GT(checked.problems[0].column, 1);
  EXPECT_THAT(checked.problems[0].text, HasSubstr("rsqr"));
  EXPECT_EQ(checked.problems[1].line, line_of(right, "store attn"));
}

TEST(PlanEditor, RefusesThePlanOfAnotherBlock) {
  const Bench b;
  gui::Setup larger = test::small_setup();
  larger.workload.seq = 512;
  const CheckedPlan checked = check_plan_text(larger, b.text(b.coda).text, "test");
  ASSERT_EQ(checked.problems.size(), 1U);
  EXPECT_THAT(checked.problems[0].text, HasSubstr("another block"));
}

TEST(PlanEditor, TypingMakesARunOfItsOwn) {
  Bench b;
  const std::string right = b.text(b.coda).text;
  const std::string next = right + "# mine\n";
  const RunId own = b.bench.set_plan_draft(b.coda, next, "typing");
  EXPECT_NE(own, b.coda);
  EXPECT_EQ(b.bench.shown_run(), own);
  EXPECT_EQ(b.bench.document().runs.at(own).name, "plan from coda");
  EXPECT_EQ(b.bench.set_plan_draft(own, next + "# more\n", "typing"), own);
  EXPECT_EQ(b.text(own).text, next + "# more\n");
  EXPECT_TRUE(b.text(own).edited());
  b.bench.wait();
  EXPECT_EQ(b.bench.results().find(own)->result->totals.time,
            b.bench.results().find(b.coda)->result->totals.time);
  EXPECT_TRUE(b.bench.undo());
  EXPECT_EQ(b.bench.document().runs.find(own), nullptr);
}

TEST(PlanEditor, ARightDraftIsPredictedAndAWrongOneIsKept) {
  Bench b;
  const std::string right = b.text(b.coda).text;
  // Given a plan whose norm is made from a copy of the row: one statistic more.
  const std::string slower =
      replaced(right, "m1 = m + 1e-05\n", "m1 = m + 1e-05\n    m2 = m1 * 1\n");
  const RunId own = b.bench.set_plan_draft(b.coda, slower, "typing");
  const CheckedPlan checked = b.check(slower);
  if (checked.problems.empty()) b.bench.take_plan_draft(own, slower, checked.policy, "typing");
  const std::string wrong = replaced(slower, "kernel qkv", "kernl qkv");
  EXPECT_FALSE(b.check(wrong).problems.empty());
  b.bench.end_gesture();
  b.bench.set_plan_draft(own, wrong, "typing");
  b.bench.wait();
  const RunView* view = b.bench.results().find(own);
  ASSERT_TRUE(view->ok()) << view->result->problem->text;
  EXPECT_EQ(b.text(own).text, wrong);
  // Only what stands in the editor is taken.
  b.bench.take_plan_draft(own, "something else", "coda");
  EXPECT_EQ(b.bench.document().runs.at(own).plan_draft, wrong);
  // Undo leads back to the right text.
  EXPECT_TRUE(b.bench.undo());
  EXPECT_EQ(b.text(own).text, slower);
}

TEST(PlanEditor, ADraftIsNotPredicted) {
  Bench b;
  const RunId own = b.bench.set_plan_draft(b.coda, b.text(b.coda).text + "# a\n");
  b.bench.wait();
  b.bench.set_plan_draft(own, "nonsense");
  EXPECT_FALSE(b.bench.is_computing());
  b.bench.wait();
  EXPECT_TRUE(b.bench.results().find(own)->ok());
}

TEST(PlanEditor, ASessionKeepsTextAndDraft) {
  const TemporaryFolder folder("fuseline-test");
  Bench b;
  const std::string right = b.text(b.coda).text + "# \"kept\" \\ as it is\n";
  const RunId own = b.bench.set_plan_draft(b.coda, right);
  b.bench.take_plan_draft(own, right, "coda");
  b.bench.set_plan_draft(own, right + "wrong\n");
  const std::filesystem::path file = folder.path() / "session.toml";
  save_document(b.bench.document(), file);
  const LoadedDocument loaded = load_document(file.string());
  const gui::Run* run = loaded.document.runs.find("plan from coda");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->plan_text, right);
  EXPECT_EQ(run->plan_draft, right + "wrong\n");
  EXPECT_EQ(run->plan, "");
}

TEST(PlanEditor, SavedIntoAFileItIsReadFromThere) {
  const TemporaryFolder folder("fuseline-test");
  Bench b;
  const std::string right = b.text(b.coda).text + "# mine\n";
  const RunId own = b.bench.set_plan_draft(b.coda, right);
  b.bench.take_plan_draft(own, right, "coda");
  EXPECT_THROW(b.bench.save_plan(own, (folder.path() / "mine.txt").string()), InputError);
  EXPECT_THAT(command_of_run(b.bench.document(), b.bench.document().runs.at(own), "").note,
              HasSubstr("edited"));
  const std::string file = (folder.path() / "mine.fuse").string();
  b.bench.save_plan(own, file);
  EXPECT_EQ(b.bench.document().runs.at(own).plan, file);
  EXPECT_EQ(b.bench.document().runs.at(own).plan_text, "");
  EXPECT_EQ(b.text(own).text, right);
  EXPECT_EQ(b.text(own).name, "mine.fuse");
  b.bench.wait();
  EXPECT_TRUE(b.bench.results().find(own)->ok());
  b.bench.set_plan_draft(own, right + "x");
  b.bench.reset_plan(own);
  EXPECT_FALSE(b.text(own).edited());
}

TEST(PlanEditor, SaysWhatTheKernelAtTheCursorTakes) {
  const Bench b;
  const PlanEditorText text = b.text(b.coda);
  const CheckedPlan checked = b.check(text.text);
  const PlanNumbers numbers = plan_numbers(b.bench.results(), b.coda, checked.kernels,
                                           line_of(text.text, "program qkv") + 2);
  EXPECT_THAT(numbers.total, HasSubstr("than eager"));
  EXPECT_THAT(numbers.kernel, HasSubstr("qkv: "));
  EXPECT_EQ(plan_numbers(b.bench.results(), b.coda, checked.kernels, 1).kernel, "");
}

TEST(PlanEditor, AMeasuredRunHasNoText) {
  Document document = test::small_document({"eager"});
  const RunId id = document.runs.add({.policy = "eager", .measurements = "none"});
  EXPECT_THAT(plan_editor_text(document, {}, id).why_not, HasSubstr("measured"));
}

TEST(PlanEditor, ColoursWordsOfItsLanguage) {
  const auto roles = [](std::string_view line) {
    std::vector<WordRole> all;
    for (const WordSpan& w : words_of_plan_line(line)) all.push_back(w.role);
    return all;
  };
  EXPECT_EQ(
      roles("    m1 = rsqrt(m) + 1e-05  # why"),
      (std::vector{WordRole::function, WordRole::number, WordRole::number, WordRole::comment}));
  EXPECT_EQ(roles("kernel qkv: gemm"), (std::vector{WordRole::keyword}));
}

}  // namespace
}  // namespace fuseline::gui
