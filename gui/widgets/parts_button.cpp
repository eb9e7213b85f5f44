#include "gui/widgets/parts_button.h"

#include <QMenu>
#include <algorithm>

#include "gui/model/graph_parts.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

PartsButton::PartsButton(QWidget* parent) : QToolButton(parent) {
  setText(tr("Parts"));
  setObjectName("graph-parts");
  setAccessibleName(tr("Parts of the block"));
  setToolTip(
      tr("Draw a part of the block as one box; a double click on one of its operators does "
         "so too, and one on the box opens it"));
  setPopupMode(QToolButton::InstantPopup);
  setMenu(new QMenu(this));
  connect(menu(), &QMenu::aboutToShow, this, &PartsButton::fill);
}

BlockGraph PartsButton::close_in(const BlockGraph& graph) {
  offer(part_names(graph));
  return with_closed_parts(graph, closed_);
}

void PartsButton::offer(std::vector<std::string> parts) {
  parts_ = std::move(parts);
  setEnabled(!parts_.empty());
  show_state();
}

void PartsButton::toggle(const std::string& part) {
  if (!closed_.erase(part)) closed_.insert(part);
  show_state();
  emit changed();
}

void PartsButton::show_state() {
  const auto n = std::ranges::count_if(parts_, [&](const auto& p) { return closed_.contains(p); });
  setText(n == 0 ? tr("Parts") : tr("Parts (%1 closed)").arg(n));
}

void PartsButton::fill() {
  menu()->clear();
  for (const std::string& part : parts_) {
    QAction* action = menu()->addAction(to_qt(part));
    action->setCheckable(true);
    action->setChecked(closed_.contains(part));
    connect(action, &QAction::triggered, this, [this, part] { toggle(part); });
  }
  menu()->addSeparator();
  connect(menu()->addAction(tr("Close all")), &QAction::triggered, this, [this] {
    closed_.insert(parts_.begin(), parts_.end());
    show_state();
    emit changed();
  });
  connect(menu()->addAction(tr("Open all")), &QAction::triggered, this, [this] {
    closed_.clear();
    show_state();
    emit changed();
  });
}

}  // namespace fuseline::gui
