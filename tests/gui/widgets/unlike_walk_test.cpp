// A walk through all views: every number says what it is about, and none compares unlike things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "gui/model/best_fusion.h"
#include "gui/widgets/search_view.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;

// A search of the shown run, long enough for points that are not the best ones. Its views keep what
// it found when the controls go on.
void search(Window& window) {
  auto& view = *qobject_cast<SearchView*>(window->view("search"));
  const Document& document = window.bench().document();
  const gui::Run& run = document.runs.at(window.bench().shown_run());
  auto watch = std::make_shared<SearchWatch>();
  const BestFusion best = best_fusion(document, run, 0.5, {}, {}, watch.get());
  ASSERT_EQ(best.problem, "");
  ASSERT_GT(watch->state().points.size(), 2U);
  view.follow(watch, run);
  view.finish();
  ASSERT_FALSE(view.tables().empty());
}

// Every table of every view, as it stands with the shown run.
void walk(Window& window, const std::string& when, std::set<std::string>& seen) {
  for (View* view : window->views()) {
    view->refresh();
    view->prepare();
    view->finish();
    for (const Table& table : view->tables()) {
      seen.insert(view->id().toStdString());
      EXPECT_EQ(unlike_in(table), "") << when << ", view " << view->id().toStdString();
    }
  }
}

// The same with every run in turn as the shown one.
void expect_no_wrong_conclusion(Window& window, const std::string& when) {
  std::set<std::string> seen;
  std::vector<RunId> runs;
  for (const gui::Run& run : window.bench().document().runs.all()) runs.push_back(run.id);
  for (const RunId id : runs) {
    window.session().act([&](Workbench& bench) { bench.show_run(id); });
    window.settle();
    walk(window, when + ", run " + window.bench().document().runs.at(id).name, seen);
  }
  // All but those that have no data of their own, or none yet.
  for (const View* view : window->views()) {
    // Two graphs are compared where both are of one block.
    static const std::set<std::string> kWithoutData = {
        "graphs", "measure", "trace", "missions", "causes", "sweep", "validation", "serving"};
    const std::string id = view->id().toStdString();
    if (!kWithoutData.contains(id)) {
      EXPECT_TRUE(seen.contains(id)) << when << ": " << id;
    }
  }
  EXPECT_GE(seen.size(), 14U) << when;
}

TEST(UnlikeThings, AreComparedInNoView) {
  Window window(default_document());
  search(window);
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
