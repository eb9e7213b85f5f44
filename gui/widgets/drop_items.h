// What the graph shows while an operator is carried: a frame around every kernel that it may be
// dropped on, green or red, with what that saves.
#pragma once

#include <QGraphicsItem>
#include <QPainterPath>

#include "gui/model/operator_moves.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

class DropItem : public QGraphicsItem {
 public:
  // `place`: around the kernel's operators, in the scene's units.
  DropItem(std::size_t target, QPainterPath place, const Theme& theme);
  [[nodiscard]] std::size_t target() const { return target_; }  // index in MoveTargets
  void show(const MoveTarget& target, bool aimed);
  [[nodiscard]] Colour role() const { return role_; }
  [[nodiscard]] QRectF boundingRect() const override;
  [[nodiscard]] QPainterPath shape() const override { return place_; }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;

 private:
  class Label;
  std::size_t target_;
  QPainterPath place_;
  Theme theme_;
  Colour role_{ColourRole::neutral, 0};
  bool legal_ = false, near_ = false, aimed_ = false;
  Label* label_;  // a child, as large on the screen whatever the zoom is
};

// Green where it can be dropped, else red.
Colour role_of_target(const MoveTarget& target);
// Of its label: where it can be dropped and makes the block slower, that of worse.
Colour label_role_of(const MoveTarget& target);

}  // namespace fuseline::gui
