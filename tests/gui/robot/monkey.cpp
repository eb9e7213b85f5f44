#include "tests/gui/robot/monkey.h"

#include <malloc.h>
#include <unistd.h>

#include <QAbstractButton>
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QFileDialog>
#include <QLineEdit>
#include <QMenu>
#include <QPointer>
#include <QTest>
#include <QWheelEvent>
#include <QWindow>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "gui/model/lent_threads.h"
#include "gui/widgets/held_memory.h"
#include "sim/kernels/walk_memo.h"
#include "tests/gui/robot/places.h"

namespace fuseline::gui::robot {

namespace {

constexpr int kPauseMs = 4;  // between actions
constexpr int kTidyPauseMs = 50;
constexpr int kFirstMinute = 60;  // seconds
const QSize kSize(1240, 800);

int& playing() {
  static int count = 0;
  return count;
}

// What the process holds of the machine's memory, without what its allocator could give back.
double held_mb() {
  give_back_free_memory();
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// What the program has asked of the allocator and not given back.
double used_mb() {
  if (const std::size_t bytes = bytes_of_jemalloc(); bytes > 0)
    return static_cast<double>(bytes) / 1e6;
  char* text = nullptr;
  std::size_t length = 0;
  FILE* out = open_memstream(&text, &length);
  if (out == nullptr) return 0;
  malloc_info(0, out);
  std::fclose(out);
  const QString info = QString::fromUtf8(text, static_cast<int>(length));
  std::free(text);
  // The sums of all arenas stand last.
  const auto last = [&info](const QString& what) {
    const int at = info.lastIndexOf(what);
    const int size = info.indexOf("size=\"", at) + 6;
    return at < 0 ? 0.0 : info.mid(size, info.indexOf('"', size) - size).toDouble();
  };
  return (last("<system type=\"current\"") + last("<total type=\"mmap\"") -
          last("<total type=\"fast\"") - last("<total type=\"rest\"")) /
         1e6;
}

}  // namespace

Monkey::Monkey(MainWindow& window, unsigned seed, int seconds)
    : QObject(&window), window_(window), random_(seed), seconds_(seconds) {
  ++playing();
  window.installEventFilter(this);
  connect(&timer_, &QTimer::timeout, this, [this] { look(); });
  timer_.start(kPauseMs);
}

Monkey::~Monkey() { --playing(); }

bool Monkey::is_playing() { return playing() > 0; }

bool Monkey::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Close && watched == &window_ && state_ != State::done) {
    event->ignore();
    return true;
  }
  return QObject::eventFilter(watched, event);
}

int Monkey::below(int limit) {
  return limit <= 0 ? 0 : std::uniform_int_distribution<int>(0, limit - 1)(random_);
}

Monkey::Held Monkey::held_now() {
  return {held_mb(), used_mb(), static_cast<double>(WalkMemo::shared().use().memory) / 1e6};
}

void Monkey::look() {
  switch (state_) {
    case State::tidying:
      if (!tidy()) return;
      // What work takes while it lasts is not kept.
      if (LentThreads::shared().waiting() < LentThreads::shared().count()) return;
      // A window at rest gives up what it does not need.
      if (!rested_.isValid()) rested_.start();
      if (rested_.elapsed() < 2 * HeldMemory::kIdleMs) return;
      rested_.invalidate();
      held_.push_back(held_now());
      if (played_ms_ >= 1000LL * seconds_) {
        report();
        state_ = State::done;
        deleteLater();
        return;
      }
      // The second look is after a minute, the last one at the end.
      play_to_ms_ =
          played_ms_ == 0 && seconds_ > kFirstMinute ? 1000LL * kFirstMinute : 1000LL * seconds_;
      state_ = State::playing;
      timer_.setInterval(kPauseMs);
      since_.start();
      return;
    case State::playing:
      if (played_ms_ + since_.elapsed() > play_to_ms_) {
        played_ms_ = play_to_ms_;
        state_ = State::tidying;
        step_ = 0;
        timer_.setInterval(kTidyPauseMs);
        return;
      }
      ++actions_;
      // What it does may open a dialog and return when that is closed: the timer has to go on.
      QTimer::singleShot(0, this, [this] { act(); });
      return;
    case State::done:
      return;
  }
}

void Monkey::report() const {
  const Held& start = held_.front();
  const auto since = [](double now, double then) {
    return QString("%1%2 MB").arg(now < then ? "" : "+").arg(now - then, 0, 'f', 1).toStdString();
  };
  std::cout << "monkey: " << actions_ << " actions; "
            << since(held_.back().resident, start.resident) << " from the start's "
            << start.resident << "; in use " << since(held_.back().used, start.used) << " from "
            << start.used << ", walks " << since(held_.back().walks, start.walks) << " from "
            << start.walks;
  if (held_.size() > 2)
    std::cout << "; after the first minute " << since(held_[1].resident, start.resident)
              << ", in use " << since(held_[1].used, start.used);
  std::cout << std::endl;
}

// The same picture at the start and at the end: no dialog, the first layout, a new comparison whose
// files are read again, and every view drawn.
bool Monkey::tidy() {
  if (QWidget* popup = QApplication::activePopupWidget()) {
    popup->close();
    return false;
  }
  if (auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget())) {
    for (QAbstractButton* button : dialog->findChildren<QAbstractButton*>())
      if (button->text().contains("Discard") || button->text().contains("Don't")) {
        button->click();
        return false;
      }
    dialog->reject();
    return false;
  }
  const auto& views = window_.views();
  constexpr int kFirstView = 3;
  switch (step_) {
    case 0:
      for (QWidget* top : QApplication::topLevelWidgets())
        if (top != &window_ && top->isVisible() && qobject_cast<QDialog*>(top)) top->close();
      QApplication::clipboard()->clear();  // a picture that was copied is kept for somebody
      window_.showNormal();
      window_.resize(kSize);
      window_.reset_layout();
      window_.resize(kSize);
      ++step_;
      QTimer::singleShot(0, this, [this] { window_.action("new")->trigger(); });  // may ask
      return false;
    case 1:
    case 2:
      if (!is_ready(window_)) return false;
      if (step_ == 1) window_.action("reload")->trigger();
      ++step_;
      return false;
    default:
      break;
  }
  if (!is_ready(window_)) return false;
  const int at = step_ - kFirstView;
  if (at >= static_cast<int>(views.size())) return true;
  window_.raise_view(views[static_cast<std::size_t>(at)]->id());
  ++step_;
  return false;
}

void Monkey::act() {
  if (auto* popup = QApplication::activePopupWidget()) {
    if (chance(30)) {
      QTest::keyClick(popup, Qt::Key_Escape);
    } else {
      act_on(*popup);
    }
    return;
  }
  if (QWidget* modal = QApplication::activeModalWidget()) {
    // A file dialog would write all over the folder.
    if (auto* files = qobject_cast<QFileDialog*>(modal)) {
      files->reject();
    } else if (chance(40)) {
      QTest::keyClick(modal, Qt::Key_Escape);
    } else {
      act_on(*modal);
    }
    return;
  }
  if (chance(20)) {
    press_keys();
    return;
  }
  QWidget* top = &window_;
  for (QWidget* other : QApplication::topLevelWidgets())
    if (other->isVisible() && other->windowHandle() != nullptr && chance(10)) top = other;
  act_on(*top);
}

// What a press does may close the window that it was on: each event asks anew. It may also open a
// dialog and return when that is closed, which is when the window is being tidied: what is left of
// the action would edit the new comparison then.
void Monkey::act_on(QWidget& widget) {
  const QPointer<QWidget> top = &widget;
  const QPointer<QWindow> window = widget.windowHandle();
  const auto is_there = [&] {
    return state_ == State::playing && top != nullptr && window != nullptr && top->isVisible();
  };
  if (!is_there()) return;
  const auto somewhere = [&] { return QPoint(below(top->width()), below(top->height())); };
  const auto under = [&](QPoint at) {
    QWidget* child = top->childAt(at);
    return child == nullptr ? top.data() : child;
  };
  const QPoint at = somewhere();
  QTest::mouseMove(window, at);
  if (!is_there()) return;
  const int what = below(100);
  if (what < 60) {
    const auto keys = chance(10)  ? Qt::KeyboardModifiers(Qt::ShiftModifier)
                      : chance(5) ? Qt::KeyboardModifiers(Qt::ControlModifier)
                                  : Qt::KeyboardModifiers();
    QTest::mouseClick(window, Qt::LeftButton, keys, at);
  } else if (what < 65) {
    QTest::mouseDClick(window, Qt::LeftButton, {}, at);
  } else if (what < 70) {
    QWidget* clicked = under(at);
    QContextMenuEvent event(QContextMenuEvent::Mouse, clicked->mapFrom(top, at),
                            top->mapToGlobal(at));
    QApplication::sendEvent(clicked, &event);
  } else if (what < 85) {
    QTest::mousePress(window, Qt::LeftButton, chance(20) ? Qt::ShiftModifier : Qt::NoModifier, at);
    for (int i = 0; i < 4 && is_there(); ++i) {
      const QPoint to = somewhere();
      QWidget* grabber = QWidget::mouseGrabber();
      QWidget* holder = grabber != nullptr && grabber->window() == top ? grabber : under(at);
      QMouseEvent move(QEvent::MouseMove, holder->mapFrom(top, to), top->mapToGlobal(to),
                       Qt::NoButton, Qt::LeftButton, {});
      QApplication::sendEvent(holder, &move);
    }
    if (is_there()) QTest::mouseRelease(window, Qt::LeftButton, {}, somewhere());
  } else {
    QWidget* turned = under(at);
    QWheelEvent wheel(turned->mapFrom(top, at), top->mapToGlobal(at), {},
                      {0, 120 * (chance(50) ? 1 : -1)}, {}, {}, Qt::NoScrollPhase, false);
    QApplication::sendEvent(turned, &wheel);
  }
}

void Monkey::press_keys() {
  static const std::array<const char*, 46> kKeys = {"Tab",
                                                    "Shift+Tab",
                                                    "Up",
                                                    "Down",
                                                    "Left",
                                                    "Right",
                                                    "Return",
                                                    "Space",
                                                    "Esc",
                                                    "+",
                                                    "-",
                                                    "0",
                                                    "M",
                                                    "?",
                                                    "Ctrl+Z",
                                                    "Ctrl+Shift+Z",
                                                    "Ctrl+Z",
                                                    "Ctrl+D",
                                                    "F1",
                                                    "F5",
                                                    "Delete",
                                                    "Home",
                                                    "End",
                                                    "PgUp",
                                                    "PgDown",
                                                    "Ctrl+N",
                                                    "Ctrl+S",
                                                    "Ctrl+1",
                                                    "Ctrl+2",
                                                    "Ctrl+3",
                                                    "Ctrl+4",
                                                    "Ctrl+5",
                                                    "Ctrl+6",
                                                    "Ctrl+7",
                                                    "Ctrl+8",
                                                    "Ctrl+9",
                                                    "Ctrl+Shift+1",
                                                    "Ctrl+Shift+2",
                                                    "F11",
                                                    "Ctrl+F",
                                                    "Ctrl+Shift+R",
                                                    "Shift+F1",
                                                    "Alt+F",
                                                    "Alt+R",
                                                    "Backspace",
                                                    "Ctrl+E"};
  QPointer<QWidget> to = QApplication::focusWidget();
  if (to == nullptr) to = &window_;
  if (chance(25)) {
    for (int i = below(6); i >= 0 && to != nullptr; --i)
      QTest::keyClick(to, "ab019 .:->[]x"[static_cast<std::size_t>(below(13))]);
    return;
  }
  QTest::keySequence(to, QKeySequence(kKeys[static_cast<std::size_t>(below(kKeys.size()))]));
}

}  // namespace fuseline::gui::robot
