// A menu of the parts of a block: those that are closed are drawn as one box each.
#pragma once

#include <QToolButton>
#include <set>
#include <string>
#include <vector>

#include "gui/model/block_graph.h"

namespace fuseline::gui {

class PartsButton : public QToolButton {
  Q_OBJECT
 public:
  explicit PartsButton(QWidget* parent);
  // The graph with what is closed of it; the menu offers its parts from now on.
  [[nodiscard]] BlockGraph close_in(const BlockGraph& graph);
  // Two graphs beside each other have the parts of both.
  void offer(std::vector<std::string> parts);
  [[nodiscard]] const std::set<std::string>& closed() const { return closed_; }
  void toggle(const std::string& part);

 signals:
  void changed();

 private:
  void fill();
  void show_state();
  std::vector<std::string> parts_;
  std::set<std::string> closed_;
};

}  // namespace fuseline::gui
