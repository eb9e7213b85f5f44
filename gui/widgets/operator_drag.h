// Carries an operator from its kernel to another one, with the mouse or with keys: shows where it
// can be dropped and what that saves, and makes the edit when it is dropped.
#pragma once

#include <QLabel>
#include <QObject>
#include <optional>
#include <string>

#include "gui/model/operator_moves.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/graph_canvas.h"
#include "gui/widgets/session.h"

namespace fuseline::gui {

class OperatorDrag : public QObject {
  Q_OBJECT
 public:
  OperatorDrag(Session& session, GraphCanvas& canvas);

  [[nodiscard]] bool is_active() const { return !op_.empty(); }
  // By hand: it follows carry(). By keys: step() aims at the next target, those that are near
  // first.
  void lift(const std::string& op);
  void carry(QPoint at);  // in the canvas
  void step(int by);
  void put();     // makes the edit, or has the strip say why not
  void cancel();  // everything stays as it is
  // Waits until targets and savings are known and drawn.
  void finish();

  [[nodiscard]] const MoveTargets& targets() const { return targets_; }
  [[nodiscard]] const MoveTarget* aim() const;
  [[nodiscard]] QString text() const { return label_->text(); }

 signals:
  void ended();

 private:
  struct Request {
    Document document;
    RunView run;
    std::string op;
    std::optional<MoveTargets> known{};  // its savings are to be found
  };

  void take(MoveTargets targets);
  void draw();
  void say();
  [[nodiscard]] std::vector<std::size_t> reachable() const;

  Session& session_;
  GraphCanvas& canvas_;
  QLabel* label_;  // beside the mouse
  std::string op_;
  MoveTargets targets_;
  std::optional<std::size_t> aim_;
  std::optional<QPoint> at_;  // of the mouse; empty: carried by keys
  std::optional<Request> request_;
  Background<Request, MoveTargets> judge_, simulate_;
};

}  // namespace fuseline::gui
