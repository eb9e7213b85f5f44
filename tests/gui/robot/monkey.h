// Does things at random on the window: clicks, drags, keys, the wheel. It looks whether the window
// keeps memory for that.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <random>

#include "gui/widgets/main_window.h"

namespace fuseline::gui::robot {

// Walks through all views and begins a new comparison, at the start and at the end: both times the
// window shows the same, so that what it holds beyond the start is kept for nothing. Prints
// "monkey: 5800 actions; 2.1 MB more than at the start".
class Monkey : public QObject {
 public:
  Monkey(MainWindow& window, unsigned seed, int seconds);
  ~Monkey() override;
  static bool is_playing();

 protected:
  // The window stays open, whatever the monkey finds.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void look();
  bool tidy();  // false: it takes longer
  void act();
  void act_on(QWidget& widget);
  void press_keys();
  [[nodiscard]] int below(int limit);
  [[nodiscard]] bool chance(int percent) { return below(100) < percent; }

  enum class State : std::uint8_t { before, playing, after, done };
  MainWindow& window_;
  std::mt19937 random_;
  int seconds_;
  QTimer timer_;
  QElapsedTimer since_;
  State state_ = State::before;
  int step_ = 0;  // of tidying
  int actions_ = 0;
  double start_mb_ = 0, start_used_ = 0;
};

}  // namespace fuseline::gui::robot
