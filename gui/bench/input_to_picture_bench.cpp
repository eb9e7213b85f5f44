// From a click on an edge of the block graph, or a step of a slider, until the window has painted
// what it changes. The aim is 100 ms for a block (LLaMA-2-7B, five runs).
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QSlider>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "gui/model/document.h"
#include "gui/widgets/main_window.h"
#include "gui/widgets/theme.h"

namespace {

using namespace fuseline::gui;

struct Shown {
  Shown()
      : session(default_document(), folder.path().toStdString()),
        window(session, folder.path().toStdString()) {
    window.resize(1500, 950);
    window.show();
    static_cast<void>(QTest::qWaitForWindowExposed(&window));
    settle();
  }
  ~Shown() { session.end_without_autosave(); }

  // As the event loop does: results come when they are there, then what changed is painted.
  void settle() {
    do {
      QApplication::processEvents(QEventLoop::WaitForMoreEvents, 5);
    } while (session.bench().is_computing() || window.graph().is_busy());
    QApplication::processEvents();
    window.repaint();
  }

  QTemporaryDir folder;
  Session session;
  MainWindow window;
};

// The edited run alone is new: the others are known, as when a person clicks.
void click_on_an_edge(benchmark::State& state) {
  Shown shown;
  GraphCanvas& canvas = shown.window.graph().canvas();
  double clock = 1;
  for (auto _ : state) {
    state.PauseTiming();
    shown.session.act([&](Workbench& bench) {
      Setup setup = bench.document().setup;
      setup.what_if.sm_clock = clock -= 1e-4;
      bench.set_setup(setup, "another GPU");
    });
    shown.settle();
    const EdgeItem* edge = canvas.graph().find_edge({"down", "residual2"});
    state.ResumeTiming();
    QTest::mouseClick(canvas.viewport(), Qt::LeftButton, {}, canvas.mapFromScene(edge->middle()));
    shown.settle();
  }
}

// All runs are computed anew.
void step_of_a_slider(benchmark::State& state) {
  Shown shown;
  auto* slider = shown.window.findChild<QSlider*>("what-if-hbm_bandwidth");
  int step = 0;
  for (auto _ : state) {
    shown.session.bench().cache().clear();
    slider->setValue(++step % 2 == 0 ? 4 : 8);
    shown.settle();
  }
}

BENCHMARK(click_on_an_edge)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(step_of_a_slider)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  int one = 1;
  const QApplication app(one, argv);
  QApplication::setStyle("Fusion");
  QApplication::setPalette(light_palette());
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
