// What the tests of the window share: a window on a small block with a folder of its own for what
// it remembers, and mouse events as a display would send them.
#pragma once

#include <QApplication>
#include <QMessageBox>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <memory>

#include "gui/widgets/main_window.h"
#include "gui/widgets/theme.h"
#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui::test {

// LLaMA-2-7B with fewer tokens: its activations do not all stay in L2, and it is quick.
inline Document window_document(const std::vector<std::string>& policies = {"eager",
                                                                            "per-operator"}) {
  Document document;
  document.title = "window";
  document.setup.model = "llama2-7b";
  document.setup.workload.seq = 1024;
  document.runs = runs_for(document.setup, policies, {}, "");
  return document;
}

// Which run it shows at first: the last prediction, which fuses most, or the one that a window
// opens on.
enum class Show { last, as_opened };

class Window {
 public:
  explicit Window(Document document = window_document(), QSize size = {1400, 900},
                  Show show = Show::last) {
    application();
    QApplication::setStyle("Fusion");
    QApplication::setPalette(light_palette());
    session_ = std::make_unique<Session>(std::move(document), folder());
    for (const Run& run : bench().document().runs.all())
      if (show == Show::last && !run.is_measurement()) bench().show_run(run.id);
    window_ = std::make_unique<MainWindow>(*session_, folder());
    window_->resize(size);
    window_->show();
    static_cast<void>(QTest::qWaitForWindowExposed(window_.get()));
    QCursor::setPos(window_->mapToGlobal({1, 1}));  // over nothing
    settle();
  }
  ~Window() {
    window_.reset();
    session_->end_without_autosave();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] MainWindow& operator*() { return *window_; }
  [[nodiscard]] MainWindow* operator->() { return window_.get(); }
  [[nodiscard]] Session& session() { return *session_; }
  [[nodiscard]] Workbench& bench() { return session_->bench(); }
  [[nodiscard]] GraphScene& scene() { return window_->graph().canvas().graph(); }
  [[nodiscard]] std::filesystem::path folder() { return folder_.path().toStdString(); }

  // Until nothing is computed and all that came of it is drawn.
  void settle() {
    for (int i = 0; i < 3; ++i) {
      QCoreApplication::processEvents();
      session_->wait();
      window_->graph().finish();
      QCoreApplication::processEvents();
    }
  }
  [[nodiscard]] const Totals& totals(RunId run) {
    return bench().results().find(run)->result->totals;
  }
  [[nodiscard]] QPoint pixel_of(const EdgeItem& edge) {
    return window_->graph().canvas().mapFromScene(edge.middle());
  }
  void click_edge(const OnChipEdge& edge) {
    const EdgeItem* item = scene().find_edge(edge);
    ASSERT_NE(item, nullptr) << edge.from << " -> " << edge.to;
    QTest::mouseClick(window_->graph().canvas().viewport(), Qt::LeftButton, {}, pixel_of(*item));
    settle();
  }

 private:
  QTemporaryDir folder_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<MainWindow> window_;
};

// Presses a button of the next modal message box; `text` gets what it said.
inline void answer_next_box(QMessageBox::StandardButton button, QString* text = nullptr) {
  QTimer::singleShot(50, qApp, [button, text] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (box == nullptr) return;
    if (text != nullptr) *text = box->text() + "\n" + box->informativeText();
    box->button(button)->click();
  });
}

// The message box that is open beside the window, closed again; its text.
inline QString take_failure(MainWindow& window) {
  for (auto* box : window.findChildren<QMessageBox*>("failure")) {
    if (!box->isVisible()) continue;
    const QString text = box->informativeText();
    box->close();
    return text;
  }
  return {};
}

}  // namespace fuseline::gui::test
