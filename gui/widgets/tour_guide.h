// The tour on the real window: a card beside what it is about, a frame around that, and the acts of
// the tour done by the window itself.
#pragma once

#include <QFrame>
#include <QTimer>
#include <optional>

#include "gui/model/tour.h"
#include "model/custom_fusion.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace fuseline::gui {

class MainWindow;
class Session;

class TourGuide : public QFrame {
  Q_OBJECT
 public:
  TourGuide(Session& session, MainWindow& window);

  void start();
  void go_to(int step);  // past the last one, the tour ends
  void end();            // takes back what it did
  [[nodiscard]] bool is_running() const { return step_ >= 0; }
  [[nodiscard]] int step() const { return step_; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  void pause(bool on);
  // So much of its time has passed.
  void pass(double seconds);

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // the window is resized
  void changeEvent(QEvent* event) override;

 private:
  class Frame;
  void show_step();
  void act(TourAct what);
  void leave_step();
  void undo_edit();
  void place();
  [[nodiscard]] QWidget* target() const;
  [[nodiscard]] std::optional<OnChipEdge> edge_to_fuse() const;

  Session& session_;
  MainWindow& window_;
  Frame* frame_;
  QLabel *title_, *text_, *count_;
  QProgressBar* progress_;
  QPushButton *back_, *pause_, *next_, *close_;
  QTimer clock_;
  double passed_ = 0;  // seconds of this step
  int step_ = -1;
  bool paused_ = false;
  std::optional<OnChipEdge> edge_;  // that the tour points at
  bool edited_ = false;             // and its edit is not undone yet
};

}  // namespace fuseline::gui
