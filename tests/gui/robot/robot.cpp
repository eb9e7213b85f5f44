// fuseline-gui, used by a robot: the program itself, with input events as a display sends them.
//
// usage: gui_robot [--out DIR] STEP|FILE.steps... [-- ARGUMENT OF fuseline-gui...]
// A file has one step a line; empty lines and those that begin with # are left out. Steps:
//   args=A B              arguments of fuseline-gui, as behind --
//   size=WxH              of the window
//   ready                 until a window is there, and nothing is computed or drawn any more
//   click=FROM -> TO      an edge of the block graph; hover=FROM -> TO points at it only
//   run=NAME              a click on that run in the list
//   lift=OP               presses on an operator of the graph and moves a little: it is carried
//   over=OP               moves what is carried there; over=nothing: beside all kernels
//   drop                  lets it go
//   tab=VIEW              a click on the view's tab; on the arrows where the tab is hidden
//   button=NAME           a click on a button, by object name or text
//   widget=NAME           a click into the middle of a widget
//   choose=BOX: TEXT      opens the box of choices and clicks on the one that holds the text
//   row=TABLE: TEXT       a click on the row of a table or list that holds the text
//   menu=TEXT             a click on a menu of the menu bar, or on an entry of the open one
//   write=FIELD: TEXT     clicks into a field of one line and types in place of what is there
//   type=TEXT             types where the cursor is; \n is Enter
//   slide=SLIDER: PART    drags the slider's handle there, 0 to 1
//   wheel=WIDGET: STEPS   turns the wheel over it
//   drag=WIDGET: X,Y      drags from its middle by so many pixels
//   point=WIDGET: X,Y     points at a place of it, in parts of its size
//   sees=WIDGET: TEXT     until the widget says the text; "strip": the strip over the graph
//   previewed             until the details say what a click would do
//   key=Ctrl+Z            a key, to the widget that has the focus or to the dialog that is open
//   file=PATH             types the path into the open file dialog, and Enter
//   press=TEXT            the button of the open message box; its text is printed
//   autosaved             until unsaved work is on disk
//   shot=FILE.png         the window as it is on the display, in DIR
//   totals                prints the exact numbers of the shown run
//   details, strip        prints what they say
//   say=TEXT              prints it
//   throw=TEXT            an exception out of an event that the window gets; prints when it is over
//   monkey=SEED: SECONDS  does things at random for so long, and prints what became of the memory
//   hang                  does nothing any more, until it is killed
//   quit                  closes the window
// Exit status 99, and stuck.png in DIR: a step could not be done within two minutes.
#include <QAbstractButton>
#include <QApplication>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QScreen>
#include <QTest>
#include <QTextBrowser>
#include <QTimer>
#include <QWindow>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <vector>

#include "cuda/compile/compile_apart.h"
#include "gui/widgets/app.h"
#include "gui/widgets/main_window.h"
#include "gui/widgets/qt_text.h"
#include "tests/gui/robot/monkey.h"
#include "tests/gui/robot/mouse_steps.h"
#include "tests/gui/robot/places.h"

namespace {

using namespace fuseline;
using namespace fuseline::gui;
using namespace fuseline::gui::robot;

constexpr int kLookEveryMs = 30;
constexpr int kLongestMs = 120000;
constexpr int kStuck = 99;

QString& out_folder() {
  static QString folder = ".";
  return folder;
}

MainWindow* the_window() {
  for (QWidget* widget : QApplication::topLevelWidgets()) {
    if (auto* window = qobject_cast<MainWindow*>(widget)) return window;
  }
  return nullptr;
}

// Answers each event with an exception.
class Thrower : public QObject {
 public:
  explicit Thrower(std::string text) : text_(std::move(text)) {}
  bool event(QEvent* /*event*/) override { throw std::runtime_error(text_); }

 private:
  std::string text_;
};

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
    if (Monkey::is_playing()) since_.restart();
    if (since_.elapsed() > kLongestMs) {
      std::cerr << "gui_robot: stuck at " << steps_[next_].toStdString() << "\n";
      if (MainWindow* window = the_window()) shoot(*window, "stuck.png");
      QCoreApplication::exit(kStuck);
      next_ = static_cast<int>(steps_.size());
      return;
    }
    const QString step = steps_[next_];
    const QString name = step.section('=', 0, 0), value = step.section('=', 1);
    MainWindow* window = the_window();
    if (window == nullptr || !window->isVisible() || is_acting() || !can_do(*window, name, value))
      return;
    ++next_;
    since_.restart();
    // What it does may open a dialog and return when that is closed: this timer has to go on.
    acting_in_.push_back(QApplication::activeModalWidget());
    QTimer::singleShot(0, this, [this, name, value] {
      if (MainWindow* there = the_window()) act(*there, name, value);
      acting_in_.pop_back();
    });
  }

  // A step that waits for what its press does lets this timer go on, too. The next step is not to
  // come in between, unless a dialog or a menu that the step opened waits for it.
  bool is_acting() const {
    if (acting_in_.empty()) return false;
    if (qobject_cast<QMenu*>(QApplication::activePopupWidget()) != nullptr) return false;
    const QWidget* dialog = QApplication::activeModalWidget();
    return dialog == nullptr || dialog == acting_in_.back();
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
    static const QStringList placed = {"click",  "hover",  "run",   "lift", "over",
                                       "button", "widget", "row",   "menu", "choose",
                                       "write",  "slide",  "wheel", "drag", "point"};
    if (placed.contains(name)) return place_of(window, name, value).has_value();
    if (name == "ready") return is_ready(window);
    if (name == "tab") {
      const std::optional<TabPlace> tab = tab_place(window, value);
      if (tab && tab->is_arrow) click(tab->place);  // and looks again
      return tab && !tab->is_arrow;
    }
    if (name == "sees") {
      const auto [object, text] = parts(value);
      return text_of(window, object).contains(text);
    }
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
    return name != "hang" && !Monkey::is_playing();
  }

  static void act(MainWindow& window, const QString& name, const QString& value) {
    if (act_with_mouse(window, name, value)) return;
    if (name == "key") {
      QWidget* to = QApplication::activeModalWidget();
      if (to == nullptr) QApplication::setActiveWindow(&window);  // as a window manager does
      if (to == nullptr) to = QApplication::focusWidget();
      QTest::keySequence(to == nullptr ? &window : to, QKeySequence(value));
    } else if (name == "type") {
      QWidget* to = QApplication::focusWidget();
      if (to == nullptr) return;
      const QStringList lines = value.split("\\n");
      for (int i = 0; i < lines.size(); ++i) {
        if (i > 0) QTest::keyClick(to, Qt::Key_Return);
        QTest::keyClicks(to, lines[i]);
      }
    } else if (name == "press") {
      const auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      std::cout << box->text().toStdString() << std::endl;
      QTest::mouseClick(button_of(value), Qt::LeftButton);
    } else if (name == "file") {
      auto* edit = QApplication::activeModalWidget()->findChild<QLineEdit*>("fileNameEdit");
      edit->setFocus();
      edit->selectAll();
      // The dialog begins in a folder of its own.
      QTest::keyClicks(edit, QFileInfo(value).absoluteFilePath());
      QTest::keyClick(edit, Qt::Key_Return);
    } else if (name == "shot") {
      shoot(window, value);
    } else if (name == "totals") {
      const RunModel& runs = window.runs().model();
      const int row = runs.row_of(window.graph().shown_run());
      std::cout << runs.row(row).tooltip << std::endl;
    } else if (name == "details") {
      std::cout << text_of(window, "details").toStdString() << std::endl;
    } else if (name == "strip") {
      std::cout << text_of(window, "strip").toStdString() << std::endl;
    } else if (name == "size") {
      const QSize size(value.section('x', 0, 0).toInt(), value.section('x', 1, 1).toInt());
      window.resize(size);
      QApplication::processEvents();
      window.reset_layout();  // in parts of that size; for a moment it takes more
      QApplication::processEvents();
      window.resize(size);
    } else if (name == "monkey") {
      const auto [seed, seconds] = parts(value);
      new Monkey(window, seed.toUInt(), seconds.toInt());
    } else if (name == "say") {
      std::cout << value.toStdString() << std::endl;
    } else if (name == "throw") {
      Thrower thrower(value.toStdString());
      QEvent event(QEvent::User);
      QCoreApplication::sendEvent(&thrower, &event);
      std::cout << "delivered" << std::endl;
    } else if (name == "quit") {
      window.close();
    } else if (name != "ready" && name != "autosaved" && name != "previewed" && name != "sees") {
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
    if (!picture.save(QDir(out_folder()).filePath(file)))
      std::cerr << "gui_robot: cannot write " << file.toStdString() << "\n";
  }

  QStringList steps_;
  int next_ = 0;
  std::vector<const QWidget*> acting_in_;  // of the steps that are not done yet: the dialog before
  QTimer timer_;
  QElapsedTimer since_;
};

QStringList& steps() {
  static QStringList list;
  return list;
}

QStringList& own_arguments() {
  static QStringList list;
  return list;
}

bool read_steps(const QString& name) {
  QFile file(name);
  if (!file.open(QIODevice::ReadOnly | QIODevice::Text)) {
    std::cerr << "gui_robot: cannot read " << name.toStdString() << "\n";
    return false;
  }
  for (const QString& text : QString::fromUtf8(file.readAll()).split('\n')) {
    const QString line = text.startsWith("type=") ? text : text.trimmed();
    if (line.startsWith("args=")) {
      own_arguments() << line.mid(5).split(' ');
    } else if (!line.isEmpty() && !line.startsWith('#')) {
      steps() << line;
    }
  }
  return true;
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
  if (argc == 3 &&
      std::string_view(argv[1]) == cuda::kCompileOption)  // as the window starts itself
    return run_app(argc, argv, std::cout, std::cerr);
  // A pixel of a picture is one of the window.
  if (qgetenv("QT_QPA_PLATFORM") == "offscreen" && !qEnvironmentVariableIsSet("QT_FONT_DPI"))
    qputenv("QT_FONT_DPI", "96");
  std::vector<char*> own{argv[0]};
  bool of_robot = true;
  for (int i = 1; i < argc; ++i) {
    if (of_robot && std::string_view(argv[i]) == "--") {
      of_robot = false;
    } else if (of_robot && std::string_view(argv[i]) == "--out" && i + 1 < argc) {
      out_folder() = QString::fromUtf8(argv[++i]);
    } else if (of_robot && std::string_view(argv[i]).ends_with(".steps")) {
      if (!read_steps(QString::fromUtf8(argv[i]))) return 2;
    } else if (of_robot) {
      steps() << QString::fromUtf8(argv[i]);
    } else {
      own.push_back(argv[i]);
    }
  }
  std::vector<QByteArray> kept;
  for (const QString& argument : own_arguments()) kept.push_back(argument.toUtf8());
  for (QByteArray& argument : kept) own.push_back(argument.data());
  int count = static_cast<int>(own.size());
  own.push_back(nullptr);
  return run_app(count, own.data(), std::cout, std::cerr);
}
