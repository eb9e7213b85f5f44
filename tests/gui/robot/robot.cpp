// fuseline-gui, used by a robot: the program itself, with input events as a display sends them.
//
// usage: gui_robot STEP... [-- ARGUMENT OF fuseline-gui...]
//   ready               until a window is there, and nothing is computed or drawn any more
//   click=FROM -> TO    an edge of the block graph; hover=FROM -> TO points at it only
//   run=NAME            a click on that run in the list
//   previewed           until the details say what a click would do
//   key=Ctrl+Z          a key, to the window or to the dialog that is open
//   file=PATH           types the path into the open file dialog, and Enter
//   press=TEXT          the button of the open message box; its text is printed
//   autosaved           until unsaved work is on disk
//   shot=FILE.png       the window as it is on the display
//   totals              prints the exact numbers of the shown run, details the strip about the
//   mouse strip               prints what the strip above the graph says say=TEXT            prints
//   it hang                does nothing any more, until it is killed quit                closes the
//   window
// Exit status 99: a step could not be done within a minute.
#include <QAbstractButton>
#include <QApplication>
#include <QFileDialog>
#include <QLineEdit>
#include <QMessageBox>
#include <QScreen>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <QTimer>
#include <QWindow>
#include <iostream>
#include <optional>

#include "gui/widgets/app.h"
#include "gui/widgets/main_window.h"
#include "gui/widgets/qt_text.h"
#include "model/custom_fusion.h"

namespace {

using namespace fuseline;
using namespace fuseline::gui;

constexpr int kLookEveryMs = 30;
constexpr int kLongestMs = 60000;
constexpr int kStuck = 99;

MainWindow* the_window() {
  for (QWidget* widget : QApplication::topLevelWidgets()) {
    if (auto* window = qobject_cast<MainWindow*>(widget)) return window;
  }
  return nullptr;
}

// Steps are tried until they can be done: a timer goes on while a dialog waits in a loop of its
// own.
class Robot : public QObject {
 public:
  Robot(QStringList steps, QObject* parent) : QObject(parent), steps_(std::move(steps)) {
    connect(&timer_, &QTimer::timeout, this, [this] { look(); });
    timer_.start(kLookEveryMs);
    since_.start();
  }

 private:
  void look() {
    if (next_ >= steps_.size()) return;
    if (since_.elapsed() > kLongestMs) {
      std::cerr << "gui_robot: stuck at " << steps_[next_].toStdString() << "\n";
      QCoreApplication::exit(kStuck);
      next_ = static_cast<int>(steps_.size());
      return;
    }
    const QString step = steps_[next_];
    const QString name = step.section('=', 0, 0), value = step.section('=', 1);
    MainWindow* window = the_window();
    if (window == nullptr || !window->isVisible() || !can_do(*window, name, value)) return;
    ++next_;
    since_.restart();
    // What it does may open a dialog and return when that is closed: this timer has to go on.
    QTimer::singleShot(0, window, [window, name, value] { act(*window, name, value); });
  }

  static bool is_ready(const MainWindow& window) {
    for (const View* view : window.views()) {
      if (view->is_busy() && view->isVisible()) return false;
    }
    return window.is_idle() && QApplication::activeModalWidget() == nullptr;
  }

  static std::optional<QPoint> edge_place(const MainWindow& window, const QString& text) {
    const EdgeItem* edge =
        window.graph().canvas().graph().find_edge(parse_edge(from_qt(text), "edge"));
    if (edge == nullptr) return std::nullopt;
    const GraphCanvas& canvas = window.graph().canvas();
    return canvas.viewport()->mapTo(&window, canvas.mapFromScene(edge->middle()));
  }

  static std::optional<QPoint> run_place(const MainWindow& window, const QString& name) {
    const RunPanel& runs = window.runs();
    for (int row = 0; row < runs.model().rowCount(); ++row) {
      const QModelIndex index = runs.model().index(row, RunModel::name);
      if (index.data().toString() != name) continue;
      return runs.table().viewport()->mapTo(&window, runs.table().visualRect(index).center());
    }
    return std::nullopt;
  }

  static QAbstractButton* button_of(const QString& text) {
    const auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (box == nullptr) return nullptr;
    for (QAbstractButton* button : box->buttons()) {
      if (button->text().remove('&') == text) return button;
    }
    return nullptr;
  }

  static bool can_do(const MainWindow& window, const QString& name, const QString& value) {
    if (name == "ready") return is_ready(window);
    if (name == "click" || name == "hover") return edge_place(window, value).has_value();
    if (name == "run") return run_place(window, value).has_value();
    if (name == "press") return button_of(value) != nullptr;
    if (name == "file") {
      return qobject_cast<QFileDialog*>(QApplication::activeModalWidget()) != nullptr;
    }
    if (name == "previewed") {
      return window.findChild<QTextBrowser*>("details")->toPlainText().contains("a click");
    }
    if (name == "autosaved") {
      const std::string file =
          "autosave-" + std::to_string(QCoreApplication::applicationPid()) + ".toml";
      return std::filesystem::exists(state_folder() / file);
    }
    return name != "hang";
  }

  static void act(MainWindow& window, const QString& name, const QString& value) {
    if (name == "click") {
      QTest::mouseMove(window.windowHandle(), *edge_place(window, value));
      QTest::mouseClick(window.windowHandle(), Qt::LeftButton, {}, *edge_place(window, value));
    } else if (name == "hover") {
      QTest::mouseMove(window.windowHandle(), *edge_place(window, value));
    } else if (name == "run") {
      QTest::mouseClick(window.windowHandle(), Qt::LeftButton, {}, *run_place(window, value));
    } else if (name == "key") {
      QWidget* to = QApplication::activeModalWidget();
      if (to == nullptr) QApplication::setActiveWindow(&window);  // as a window manager does
      QTest::keySequence(to == nullptr ? &window : to, QKeySequence(value));
    } else if (name == "press") {
      const auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      std::cout << box->text().toStdString() << std::endl;
      QTest::mouseClick(button_of(value), Qt::LeftButton);
    } else if (name == "file") {
      auto* edit = QApplication::activeModalWidget()->findChild<QLineEdit*>("fileNameEdit");
      edit->setFocus();
      edit->selectAll();
      QTest::keyClicks(edit, value);
      QTest::keyClick(edit, Qt::Key_Return);
    } else if (name == "shot") {
      shoot(window, value);
    } else if (name == "totals") {
      const RunModel& runs = window.runs().model();
      const int row = runs.row_of(window.graph().shown_run());
      std::cout << runs.row(row).tooltip << std::endl;
    } else if (name == "details") {
      std::cout << window.findChild<QTextBrowser*>("details")->toPlainText().toStdString()
                << std::endl;
    } else if (name == "strip") {
      std::cout << window.graph().edit_bar().text().toStdString() << std::endl;
    } else if (name == "say") {
      std::cout << value.toStdString() << std::endl;
    } else if (name == "quit") {
      window.close();
    } else if (name != "ready" && name != "autosaved" && name != "previewed") {
      std::cerr << "gui_robot: there is no step " << name.toStdString() << "\n";
      QCoreApplication::exit(2);
    }
  }

  // What the display shows, with the tooltip; what the window draws where nothing is displayed.
  static void shoot(MainWindow& window, const QString& file) {
    const bool displayed = QApplication::platformName() != "offscreen";
    const QPixmap picture = displayed ? window.screen()->grabWindow(0, window.x(), window.y(),
                                                                    window.width(), window.height())
                                      : window.grab();
    if (!picture.save(file)) std::cerr << "gui_robot: cannot write " << file.toStdString() << "\n";
  }

  QStringList steps_;
  int next_ = 0;
  QTimer timer_;
  QElapsedTimer since_;
};

QStringList& steps() {
  static QStringList list;
  return list;
}

// As soon as there is an application with an event loop.
void start_robot() {
  QMetaObject::invokeMethod(
      QCoreApplication::instance(), [] { new Robot(steps(), QCoreApplication::instance()); },
      Qt::QueuedConnection);
}

}  // namespace

Q_COREAPP_STARTUP_FUNCTION(start_robot)

int main(int argc, char** argv) {
  std::vector<char*> own{argv[0]};
  bool of_robot = true;
  for (int i = 1; i < argc; ++i) {
    if (of_robot && std::string_view(argv[i]) == "--") {
      of_robot = false;
    } else if (of_robot) {
      steps() << QString::fromUtf8(argv[i]);
    } else {
      own.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(own.size());
  own.push_back(nullptr);
  return run_app(count, own.data(), std::cout, std::cerr);
}
