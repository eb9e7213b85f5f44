#include "gui/model/operator_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gui/model/workbench.h"
#include "model/blocks/block.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Graph moved_block() {
  const PredictionCase c = resolve(test::small_setup());
  return build_block(c.model, c.workload);
}

Plan moved_plan(const CustomFusion& custom) {
  return make_custom_plan(moved_block(), custom.rewrites, custom.on_chip);
}

const MoveTarget* target_with(const MoveTargets& targets, const std::string& op) {
  const auto found = std::ranges::find_if(targets.targets, [&](const MoveTarget& t) {
    return std::ranges::find(t.operators, op) != t.operators.end();
  });
  return found == targets.targets.end() ? nullptr : &*found;
}

const MoveTarget* own_kernel(const MoveTargets& targets) {
  const auto found =
      std::ranges::find_if(targets.targets, [](const MoveTarget& t) { return !t.beside; });
  return found == targets.targets.end() ? nullptr : &*found;
}

TEST(OperatorMoves, AnOperatorJoinsANeighboursKernelAndIsPulledOutAgain) {
  const EditOutcome joined = move_operator(moved_block(), {}, "residual2", "down");
  ASSERT_TRUE(joined.legal) << joined.reason;
  EXPECT_EQ(joined.what, "move residual2 to down");
  EXPECT_TRUE(share_kernel(moved_plan(joined.custom), {"down", "residual2"}));
  const EditOutcome out = move_operator(moved_block(), joined.custom, "residual2", {});
  ASSERT_TRUE(out.legal) << out.reason;
  EXPECT_EQ(out.what, "pull residual2 out");
  EXPECT_EQ(out.custom, CustomFusion{});
}

// It leaves the kernel that it was in: an edge of its own stays in memory again.
TEST(OperatorMoves, AMovedOperatorLeavesItsOldKernel) {
  const CustomFusion custom{{}, {{"oproj", "residual1"}}};
  const EditOutcome moved = move_operator(moved_block(), custom, "residual1", "norm2");
  ASSERT_TRUE(moved.legal) << moved.reason;
  EXPECT_FALSE(share_kernel(moved_plan(moved.custom), {"oproj", "residual1"}));
  EXPECT_TRUE(share_kernel(moved_plan(moved.custom), {"residual1", "norm2"}));
}

TEST(OperatorMoves, WhatIsIllegalSaysWhyAndOffersTheNearestLegalMove) {
  const EditOutcome moved = move_operator(moved_block(), {}, "swiglu", "gate_up", Suggest::yes);
  EXPECT_FALSE(moved.legal);
  EXPECT_EQ(moved.custom, CustomFusion{});
  EXPECT_THAT(moved.reason, HasSubstr("the pairs of swiglu are in different tiles"));
  ASSERT_THAT(moved.suggestions, Not(IsEmpty()));
  for (const Suggestion& s : moved.suggestions)
    EXPECT_EQ(why_illegal(moved_block(), s.custom), "") << s.text;
}

TEST(OperatorMoves, OperatorsThatAreNoNeighboursAreNotJoined) {
  const EditOutcome moved = move_operator(moved_block(), {}, "residual2", "qkv");
  EXPECT_FALSE(moved.legal);
  EXPECT_EQ(moved.reason, "no tensor goes between residual2 and qkv");
}

TEST(OperatorMoves, AttentionsStepsStayTogether) {
  const EditOutcome moved = move_operator(moved_block(), {}, "softmax", {});
  EXPECT_FALSE(moved.legal);
  EXPECT_THAT(moved.reason, HasSubstr("are one kernel under custom"));
}

TEST(OperatorMoves, WhatIsThereAlreadyIsSaid) {
  EXPECT_THAT(move_operator(moved_block(), {}, "down", {}).reason,
              HasSubstr("has a kernel of its own"));
  const CustomFusion custom{{}, {{"down", "residual2"}}};
  EXPECT_THAT(move_operator(moved_block(), custom, "down", "residual2").reason,
              HasSubstr("in one kernel already"));
  EXPECT_THAT(move_operator(moved_block(), {}, "dwn", {}).reason, HasSubstr("is no operator"));
  EXPECT_THAT(move_operator(moved_block(), {}, "down", "dwn").reason, HasSubstr("is no operator"));
}

TEST(OperatorMoves, EveryKernelOfTheRunIsATargetAndNoneIsNamedTwice) {
  const Document document = test::small_document({"per-operator"});
  const Results results = test::results_of(document);
  const RunView& run = results.runs.front();
  const MoveTargets targets = move_targets(document, run, "residual2");
  ASSERT_EQ(targets.problem, "");
  EXPECT_EQ(targets.from, "residual2");
  EXPECT_THAT(targets.together, IsEmpty());
  EXPECT_EQ(own_kernel(targets), nullptr);
  EXPECT_EQ(targets.targets.size(), run.result->plan->kernels.size() - 1);
  const MoveTarget* down = target_with(targets, "down");
  ASSERT_NE(down, nullptr);
  EXPECT_TRUE(down->near && down->legal);
  EXPECT_EQ(down->text, "Move residual2 to down");
  const MoveTarget* qkv = target_with(targets, "qkv");
  ASSERT_NE(qkv, nullptr);
  EXPECT_FALSE(qkv->near || qkv->legal);
  EXPECT_THAT(qkv->text, HasSubstr("not possible, no tensor goes between"));
}

// What a target promises is what the move does.
TEST(OperatorMoves, TheSavingOfATargetIsThatOfTheEdit) {
  Workbench bench(test::small_document({"eager"}), {});
  bench.wait();
  const RunId eager = bench.shown_run();
  const RunView run = *bench.results().find(eager);
  const MoveTargets targets = with_savings(move_targets(bench.document(), run, "residual2"),
                                           bench.document(), run, bench.cache());
  const MoveTarget* down = target_with(targets, "down");
  ASSERT_NE(down, nullptr);
  ASSERT_TRUE(down->saving.has_value());
  EXPECT_THAT(down->text, StartsWith("Move residual2 to down: HBM traffic "));
  EXPECT_THAT(down->label, HasSubstr(" µs"));
  const Workbench::Edit edit = bench.move_operator(eager, "residual2", down->beside);
  ASSERT_TRUE(edit.outcome.legal);
  bench.wait();
  const PlanEstimate& before = *run.result->predicted;
  const PlanEstimate& after = *bench.results().find(edit.run)->result->predicted;
  const Saving& s = *down->saving;
  EXPECT_EQ((s.hbm + s.kernels_hbm).value(),
            (before.hbm_read + before.hbm_write - after.hbm_read - after.hbm_write).value());
  EXPECT_NEAR(to_us(s.time + s.kernels_time), to_us(before.time - after.time), 1e-6);
  // One step of undo takes the run away that the edit made.
  ASSERT_TRUE(bench.undo());
  EXPECT_EQ(bench.document().runs.find(edit.run), nullptr);
}

TEST(OperatorMoves, AnOperatorOfAKernelCanBePulledOut) {
  Document document = test::small_document({"eager"});
  gui::Run run{.name = "mine", .policy = kCustomPolicy};
  run.custom.on_chip = {{"down", "residual2"}};
  document.runs.add(run);
  const Results results = test::results_of(document);
  const MoveTargets targets = move_targets(document, results.runs.back(), "residual2");
  EXPECT_THAT(targets.together, ElementsAre("down"));
  EXPECT_EQ(targets.from, "down + residual2");
  const MoveTarget* own = own_kernel(targets);
  ASSERT_NE(own, nullptr);
  EXPECT_TRUE(own->legal);
  EXPECT_EQ(own->text, "Pull residual2 out");
  EXPECT_EQ(target_with(targets, "down"), nullptr) << "its own kernel is no target";
}

TEST(OperatorMoves, UnknownOperatorsHaveNoTargets) {
  const Document document = test::small_document({"eager"});
  const Results results = test::results_of(document);
  const MoveTargets targets = move_targets(document, results.runs.front(), "dwn");
  EXPECT_THAT(targets.targets, IsEmpty());
  EXPECT_THAT(targets.problem, HasSubstr("is no operator"));
}

}  // namespace
}  // namespace fuseline::gui
