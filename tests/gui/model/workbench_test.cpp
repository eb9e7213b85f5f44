#include "gui/model/workbench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Workbench, OpensAndComputes) {
  std::atomic<int> woken = 0;
  Workbench bench(test::small_document(), [&] { ++woken; });
  bench.wait();
  EXPECT_FALSE(bench.is_computing());
  EXPECT_EQ(bench.results().runs.size(), 2U);
  EXPECT_GT(woken, 0);
}

TEST(Workbench, FusingAnEdgeOfAPolicyMakesACustomRunAndSavesTraffic) {
  Document large = test::small_document({"per-operator"});
  large.setup.model = "llama2-7b";  // its activations do not all stay in L2
  large.setup.workload.seq = 2048;
  Workbench bench(large, {});
  bench.wait();
  const RunId policy = bench.document().runs.all()[0].id;
  const Workbench::Edit edit = bench.toggle_edge(policy, {"down", "residual2"});
  ASSERT_TRUE(edit.outcome.legal) << edit.outcome.reason;
  EXPECT_NE(edit.run, policy);
  EXPECT_EQ(bench.shown_run(), edit.run);
  EXPECT_TRUE(bench.is_computing());
  bench.wait();
  const Totals& before = bench.results().find(policy)->result->totals;
  const Totals& after = bench.results().find(edit.run)->result->totals;
  EXPECT_EQ(after.launches, before.launches - 1);
  EXPECT_LT(after.hbm(), before.hbm());
  EXPECT_LT(after.time, before.time);
  ASSERT_TRUE(bench.undo());  // one step: the run is gone again
  EXPECT_EQ(bench.document().runs.all().size(), 1U);
  EXPECT_EQ(bench.shown_run(), policy);
  EXPECT_FALSE(bench.history().can_undo());
}

TEST(Workbench, LayersAreOneStepOfUndoAndWrongNumbersAreRefused) {
  Workbench bench(test::small_document({"coda"}), {});
  bench.set_layers(4);
  bench.wait();
  EXPECT_EQ(bench.results().runs[0].result->layers->layers, 4);
  bench.set_layers(std::nullopt);
  bench.wait();
  EXPECT_EQ(bench.results().runs[0].result->layers->layers, 22);  // TinyLlama's
  EXPECT_TRUE(bench.results().runs[0].result->memory.has_value());
  EXPECT_THROW(bench.set_layers(0), InputError);
  EXPECT_THROW(bench.set_layers(kMostLayers + 1), InputError);
  EXPECT_EQ(bench.document().layers, std::nullopt);
  bench.undo();
  EXPECT_EQ(bench.document().layers, std::optional<std::int64_t>(4));
}

TEST(Workbench, AnIllegalEditChangesNothingAndItsSuggestionCanBeTaken) {
  Workbench bench(test::small_document({"per-operator"}), {});
  bench.wait();
  const Document before = bench.document();
  const RunId policy = before.runs.all()[0].id;
  const Workbench::Edit edit = bench.toggle_edge(policy, {"gate_up", "swiglu"});
  EXPECT_FALSE(edit.outcome.legal);
  EXPECT_THAT(edit.outcome.reason, HasSubstr("interleaved"));
  EXPECT_EQ(bench.document(), before);
  EXPECT_FALSE(bench.is_computing());
  ASSERT_THAT(edit.outcome.suggestions, Not(IsEmpty()));
  const RunId taken = bench.accept(edit.run, edit.outcome.suggestions.front()).run;
  bench.wait();
  EXPECT_TRUE(bench.results().find(taken)->ok());
  EXPECT_LT(bench.results().find(taken)->result->totals.launches,
            bench.results().find(policy)->result->totals.launches);
}

TEST(Workbench, AMeasurementIsNotEdited) {
  Workbench bench(default_document(), {});
  bench.wait();
  const RunId measured = bench.document().runs.all()[1].id;
  const Workbench::Edit edit = bench.toggle_edge(measured, {"down", "residual2"});
  EXPECT_FALSE(edit.outcome.legal);
  EXPECT_THAT(edit.outcome.reason, HasSubstr("was measured"));
}

TEST(Workbench, AWrongSetupIsRefusedAndNothingChanges) {
  Workbench bench(test::small_document(), {});
  bench.wait();
  gui::Setup wrong = bench.document().setup;
  wrong.gpu = "h2000";
  EXPECT_THROW(bench.set_setup(wrong, "choose a GPU"), InputError);
  EXPECT_FALSE(bench.history().can_undo());
}

TEST(Workbench, ADraggedSliderIsOneStepAndTheLastPositionIsShown) {
  Workbench bench(test::small_document(), {});
  bench.wait();
  const Seconds before = bench.results().runs[0].result->totals.time;
  gui::Setup setup = bench.document().setup;
  for (int i = 1; i <= 20; ++i) {
    setup.what_if.sm_clock = 1.0 - 0.02 * i;
    bench.set_setup(setup, "SM clock", "sm_clock");
    bench.poll();
  }
  bench.end_gesture();
  bench.wait();
  EXPECT_FALSE(bench.is_computing());
  Document last = test::small_document();
  last.setup = setup;
  EXPECT_EQ(bench.results().runs[0].result->totals.time,
            test::results_of(last).runs[0].result->totals.time);
  EXPECT_GT(bench.results().runs[0].result->totals.time, before);
  EXPECT_TRUE(bench.undo());
  EXPECT_FALSE(bench.undo());
}

TEST(Workbench, TheSelectionOfARemovedRunIsDropped) {
  Workbench bench(test::small_document(), {});
  bench.wait();
  const RunId second = bench.document().runs.all()[1].id;
  bench.select(run_thing(second));
  bench.hover(op_thing("gate_up"));
  EXPECT_THAT(bench.highlighted().operators, ::testing::Contains("gate_up"));
  bench.remove_run(second);
  bench.wait();
  EXPECT_TRUE(bench.selection().selected.is_nothing());
  EXPECT_FALSE(bench.selection().hovered.is_nothing());
}

TEST(Workbench, APinnedRunKeepsItsSetupAndUndoUnpinsIt) {
  Workbench bench(test::small_document(), {});
  const RunId first = bench.document().runs.all()[0].id;
  bench.pin_run(first, true);
  gui::Setup setup = bench.document().setup;
  setup.workload.seq = 512;
  bench.set_setup(setup, "tokens");
  bench.wait();
  EXPECT_EQ(bench.results().runs[0].result->block->workload.seq, 256);
  EXPECT_EQ(bench.results().runs[1].result->block->workload.seq, 512);
  bench.undo();
  bench.undo();
  EXPECT_FALSE(bench.document().runs.at(first).setup.has_value());
}

TEST(Workbench, CancelKeepsTheOldResults) {
  Workbench bench(test::small_document(), {});
  bench.wait();
  bench.set_baseline(bench.document().runs.all()[1].id);
  bench.cancel();
  EXPECT_FALSE(bench.is_computing());
  bench.poll();
  EXPECT_EQ(bench.results().runs.size(), 2U);
}

TEST(Workbench, RecoveredWorkIsUnsaved) {
  Workbench bench(test::small_document(), {});
  EXPECT_FALSE(bench.history().is_dirty());
  bench.open_unsaved(test::small_document({"coda"}));
  EXPECT_TRUE(bench.history().is_dirty());
  bench.mark_saved();
  EXPECT_FALSE(bench.history().is_dirty());
}

}  // namespace
}  // namespace fuseline::gui
