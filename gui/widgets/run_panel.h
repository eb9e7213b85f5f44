// The list of runs with what can be done to it.
#pragma once

#include <QWidget>

#include "gui/widgets/run_model.h"

class QAction;
class QMenu;
class QTableView;

namespace fuseline::gui {

class RunPanel : public QWidget {
  Q_OBJECT
 public:
  RunPanel(Session& session, QWidget* parent);
  void refresh();
  void show_highlight(const Highlight& highlight);
  [[nodiscard]] RunModel& model() const { return *model_; }
  [[nodiscard]] QTableView& table() const { return *table_; }
  // For the menu bar and the sheet of shortcuts.
  [[nodiscard]] std::vector<QAction*> run_actions() const { return actions_; }
  [[nodiscard]] QMenu* add_menu() const { return add_; }

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QAction* make_action(const QString& text, const QKeySequence& keys, const QString& tip);
  void fill_add_menu();
  [[nodiscard]] RunId current() const;
  void enable_actions();
  void show_what_fits();

  Session& session_;
  bool filling_ = false;
  RunModel* model_;
  QTableView* table_;
  QMenu* add_;
  QAction *baseline_, *rename_, *remove_, *up_, *down_, *pin_;
  std::vector<QAction*> actions_;
};

}  // namespace fuseline::gui
