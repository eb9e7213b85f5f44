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
//   tab=VIEW              a click on the view's tab; on the arrows beside the tabs where it is
//   hidden button=NAME           a click on a button, by object name or text widget=NAME a click
//   into the middle of a widget choose=BOX: TEXT      opens the box of choices and clicks on the
//   one that holds the text row=TABLE: TEXT       a click on the row of a table or list that holds
//   the text menu=TEXT             a click on a menu of the menu bar, or on an entry of the open
//   one write=FIELD: TEXT     clicks into a field of one line and types in place of what is there
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
//   hang                  does nothing any more, until it is killed
//   quit                  closes the window
// Exit status 99, and stuck.png in DIR: a step could not be done within two minutes.
#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QLineEdit>
#include <QMessageBox>
#include <QScreen>
#include <QSlider>
#include <QStyle>
#include <QStyleOptionSlider>
#include <QTest>
#include <QTextBrowser>
#include <QTimer>
#include <QWheelEvent>
#include <QWindow>
#include <iostream>
#include <optional>

#include "gui/widgets/app.h"
#include "gui/widgets/main_window.h"
#include "gui/widgets/qt_text.h"
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
      if (MainWindow* window = the_window()) shoot(*window, "stuck.png");
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

  static QAbstractButton* button_of(const QString& text) {
    const auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (box == nullptr) return nullptr;
    for (QAbstractButton* button : box->buttons()) {
      if (button->text().remove('&') == text) return button;
    }
    return nullptr;
  }

  // Before the first colon, and after it.
  static std::pair<QString, QString> parts(const QString& value) {
    return {value.section(':', 0, 0).trimmed(), value.section(':', 1).trimmed()};
  }

  static std::optional<Place> place_of(const MainWindow& window, const QString& name,
                                       const QString& value) {
    const auto [object, text] = parts(value);
    if (name == "click" || name == "hover") return edge_place(window, value);
    if (name == "run") return run_place(window, value);
    if (name == "lift") return operator_place(window, value);
    if (name == "over") {
      return value == "nothing" ? empty_place(window) : operator_place(window, value);
    }
    if (name == "button") return button_place(window, value);
    if (name == "widget") return widget_place(window, value);
    if (name == "row") return row_place(window, object, text);
    if (name == "menu") return menu_place(window, value);
    if (name == "choose" || name == "write" || name == "slide" || name == "wheel" ||
        name == "drag" || name == "point")
      return widget_place(window, object);
    return std::nullopt;
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
    return name != "hang";
  }

  // Steps with the mouse. False: it is none of them.
  static bool act_with_mouse(MainWindow& window, const QString& name, const QString& value) {
    const auto [object, text] = parts(value);
    if (name == "tab") {
      click(tab_place(window, value)->place);
      return true;
    }
    if (name == "drop") {
      release(carried());
      return true;
    }
    const std::optional<Place> place = place_of(window, name, value);
    if (!place) return false;
    if (name == "hover") {
      move_to(*place);
    } else if (name == "lift") {
      press(*place);
      move_to({place->widget, place->at + QPoint(4, 4)}, Qt::LeftButton);
      move_to({place->widget, place->at + QPoint(12, 12)}, Qt::LeftButton);
      carried() = *place;
    } else if (name == "over") {
      const QPoint from = carried().at;
      for (const double part : {0.25, 0.5, 0.75, 1.0})
        move_to({place->widget, from + (place->at - from) * part}, Qt::LeftButton);
      carried() = *place;
      window.graph().drag().finish();
    } else if (name == "choose") {
      choose(*place, object, text);
    } else if (name == "write") {
      click(*place);
      QTest::keySequence(place->widget, QKeySequence::SelectAll);
      QTest::keyClicks(place->widget, text);
    } else if (name == "slide") {
      slide(*place, text.toDouble());
    } else if (name == "wheel") {
      const QPoint global = place->widget->mapToGlobal(place->at);
      QWheelEvent event(place->at, global, {}, {0, 120 * text.toInt()}, {}, {}, Qt::NoScrollPhase,
                        false);
      auto* area = qobject_cast<QAbstractScrollArea*>(place->widget);
      QApplication::sendEvent(area == nullptr ? place->widget : area->viewport(), &event);
    } else if (name == "drag") {
      auto* area = qobject_cast<QAbstractScrollArea*>(place->widget);
      const Place from{area == nullptr ? place->widget : area->viewport(), place->at};
      const QPoint by(text.section(',', 0, 0).toInt(), text.section(',', 1, 1).toInt());
      press(from);
      for (const double part : {0.3, 0.6, 1.0})
        move_to({from.widget, from.at + by * part}, Qt::LeftButton);
      release({from.widget, from.at + by});
    } else if (name == "point") {
      const QSizeF size = place->widget->size();
      move_to({place->widget, QPointF(size.width() * text.section(',', 0, 0).toDouble(),
                                      size.height() * text.section(',', 1, 1).toDouble())
                                  .toPoint()});
    } else {
      click(*place);
    }
    return true;
  }

  static void choose(const Place& place, const QString& box, const QString& text) {
    auto* combo = qobject_cast<QComboBox*>(place.widget);
    if (combo == nullptr) return;
    // A release that comes late, on a busy machine, closes the list again.
    for (int i = 0; i < 5 && !combo->view()->isVisible(); ++i) {
      click(place);
      QApplication::processEvents();
    }
    const int index = combo->findText(text, Qt::MatchContains);
    if (index < 0 || !combo->view()->isVisible()) {
      std::cerr << "gui_robot: " << from_qt(box) << " does not offer " << from_qt(text) << "\n";
      QCoreApplication::exit(kStuck);
      return;
    }
    QAbstractItemView& list = *combo->view();
    const QModelIndex row = combo->model()->index(index, combo->modelColumn());
    list.scrollTo(row);
    // The popup is a window of its own.
    QTest::mouseMove(list.viewport(), list.visualRect(row).center());
    QTest::mouseClick(list.viewport(), Qt::LeftButton, {}, list.visualRect(row).center());
  }

  static void slide(const Place& place, double part) {
    auto* slider = qobject_cast<QSlider*>(place.widget);
    if (slider == nullptr) return;
    const auto handle = [&](double p) {
      QStyleOptionSlider option;
      option.initFrom(slider);
      option.orientation = slider->orientation();
      option.minimum = slider->minimum();
      option.maximum = slider->maximum();
      option.sliderPosition = option.sliderValue =
          qRound(slider->minimum() + p * (slider->maximum() - slider->minimum()));
      return slider->style()
          ->subControlRect(QStyle::CC_Slider, &option, QStyle::SC_SliderHandle, slider)
          .center();
    };
    const double now = double(slider->value() - slider->minimum()) /
                       std::max(1, slider->maximum() - slider->minimum());
    press({slider, handle(now)});
    for (const double step : {0.3, 0.6, 1.0})
      move_to({slider, handle(now + (part - now) * step)}, Qt::LeftButton);
    release({slider, handle(part)});
  }

  static Place& carried() {
    static Place place;
    return place;
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
    } else if (name == "say") {
      std::cout << value.toStdString() << std::endl;
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
  // A pixel of a picture is one of the window.
  if (qgetenv("QT_QPA_PLATFORM") == "offscreen") qputenv("QT_FONT_DPI", "96");
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
