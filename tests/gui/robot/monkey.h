// Does things at random on the window: clicks, drags, keys, the wheel. It looks whether the window
// keeps memory for that.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <random>
#include <vector>

#include "gui/widgets/main_window.h"

namespace fuseline::gui::robot {

// Begins a new comparison and walks through all views, at the start, after a minute and at the end:
// each time the window shows the same, so that what it holds beyond the start is kept for nothing.
// The start therefore has all views opened once, with the code and the fonts that they load. Prints
// "monkey: 5800 actions; +2.1 MB from the start's 113.2; ...".
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

  // What the process holds once the window is tidied, in MB.
  struct Held {
    double resident = 0;  // of the machine's memory
    double used = 0;      // of the allocator, by the program
    double walks = 0;     // of these, by the simulator that remembers its walks
  };
  static Held held_now();
  void report() const;

  enum class State : std::uint8_t { tidying, playing, done };
  MainWindow& window_;
  std::mt19937 random_;
  int seconds_;
  QTimer timer_;
  QElapsedTimer since_;
  QElapsedTimer rested_;  // since the window was tidied
  qint64 played_ms_ = 0, play_to_ms_ = 0;
  State state_ = State::tidying;
  int step_ = 0;  // of tidying
  int actions_ = 0;
  std::vector<Held> held_;
};

}  // namespace fuseline::gui::robot
