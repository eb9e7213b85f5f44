// A walk through all views: every number says what it is about, and none compares unlike things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;

// Every table of every view, of every run in turn.
void expect_no_wrong_conclusion(Window& window, const std::string& when) {
  std::set<std::string> seen;
  for (View* view : window->views()) {
    view->refresh();
    view->prepare();
    view->finish();
    for (const Table& table : view->tables()) {
      seen.insert(view->id().toStdString());
      EXPECT_EQ(unlike_in(table), "") << when << ", view " << view->id().toStdString();
    }
  }
  // All but those that have no data of their own, or none yet.
  for (const View* view : window->views()) {
    // Two graphs are compared where both are of one block.
    static const std::set<std::string> kWithoutData = {"graphs",   "measure",    "trace",
                                                       "missions", "causes",     "search",
                                                       "sweep",    "validation", "serving"};
    const std::string id = view->id().toStdString();
    if (!kWithoutData.contains(id)) {
      EXPECT_TRUE(seen.contains(id)) << when << ": " << id;
    }
  }
  EXPECT_GE(seen.size(), 14U) << when;
}

TEST(UnlikeThings, AreComparedInNoView) {
  Window window(default_document());
  expect_no_wrong_conclusion(window, "as it opens");
  // The baseline stays on its GPU, then keeps its sizes, while the controls go on.
  const RunId baseline = window.bench().document().runs.baseline();
  window.session().act([&](Workbench& bench) { bench.pin_run(baseline, true); });
  gui::Setup setup = window.bench().document().setup;
  setup.gpu = "h100-sxm";
  window.session().act([&](Workbench& bench) { bench.set_setup(setup, "GPU"); });
  window.settle();
  expect_no_wrong_conclusion(window, "baseline on another GPU");
  setup = with_phase(setup, Phase::decode);
  window.session().act([&](Workbench& bench) { bench.set_setup(setup, "phase"); });
  window.settle();
  expect_no_wrong_conclusion(window, "baseline in another phase");
}

}  // namespace
}  // namespace fuseline::gui
