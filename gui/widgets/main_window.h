// The window: the graph in the middle, runs and controls on the left, charts and tables on the
// right, all linked.
#pragma once

#include <QMainWindow>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "gui/widgets/export_job.h"
#include "gui/widgets/file_actions.h"
#include "gui/widgets/graph_view.h"
#include "gui/widgets/picture_export.h"
#include "gui/widgets/run_panel.h"
#include "gui/widgets/session.h"

class QActionGroup;
class QLabel;
class QProgressBar;
class QTimer;
class QToolButton;

namespace fuseline::gui {

// Whether dark colours were chosen in the last window; empty: nothing was chosen.
std::optional<bool> chosen_colours(const std::filesystem::path& state_folder);

class DetailsPanel;
class HeldMemory;
class SearchBox;
class SetupPanel;
class WhatIfPanel;
class TourGuide;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  // `state_folder`: where the layout is kept between windows.
  MainWindow(Session& session, const std::filesystem::path& state_folder);
  ~MainWindow() override;

  [[nodiscard]] const std::vector<View*>& views() const { return views_; }
  [[nodiscard]] View* view(const QString& id) const;  // null when there is none
  [[nodiscard]] GraphView& graph() const { return *graph_; }
  [[nodiscard]] RunPanel& runs() const { return *runs_; }
  [[nodiscard]] FileActions& files() const { return *files_; }
  [[nodiscard]] QAction* action(const QString& name) const;  // "undo", "dark", ...
  // Nothing is computed, and what was is drawn.
  [[nodiscard]] bool is_idle() const;
  void raise_view(const QString& id);
  [[nodiscard]] TourGuide& tour() const { return *tour_; }
  void reset_layout();
  void show_shortcuts();
  // All pictures and data, while the window goes on.
  void export_to(const std::filesystem::path& folder);
  // One HTML file with all of it.
  void export_page_to(const std::filesystem::path& file);
  [[nodiscard]] bool is_exporting() const { return export_ != nullptr; }

 protected:
  void closeEvent(QCloseEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // What is there (main_window.cpp).
  QDockWidget* add_dock(QWidget* content, const QString& id, const QString& title);
  QDockWidget* dock(const QString& id) const;
  void make_status_bar();
  void connect_session();
  void give_up();
  void refresh_views();
  void refresh_view(View* view);
  void show_document();
  void show_progress();
  void fail(const QString& title, const QString& text);

  // What can be done (main_window_menus.cpp).
  QAction* make(const char* name, const QString& text, const QKeySequence& keys,
                const std::function<void()>& does);
  void make_menus();
  void make_edit_menu();
  void make_view_menu();
  void make_help_menu();
  void make_tool_bar();
  void update_undo();
  void export_all();
  void export_view(View& view);
  // The view under the mouse, on a right click: its picture, its data.
  void offer_copies(View& view);
  void copy_picture(View& view);
  void copy_table(View& view);
  void copy_command();
  void follow(ExportJob* job);
  void export_page();
  [[nodiscard]] std::vector<QAction*> all_actions() const;

  // Where it is (main_window_layout.cpp).
  void arrange_docks();
  void name_tabs();
  void restore_layout();
  void store_layout() const;
  void store_colours(bool dark) const;

  Session& session_;
  std::filesystem::path settings_file_;
  GraphView* graph_;
  RunPanel* runs_;
  SetupPanel* setup_;
  WhatIfPanel* what_if_;
  DetailsPanel* details_;
  SearchBox* search_;
  FileActions* files_;
  TourGuide* tour_ = nullptr;
  std::vector<View*> views_;
  std::vector<QDockWidget*> docks_;
  std::set<View*> stale_;  // hidden when results changed
  std::vector<QAction*> own_actions_;
  QLabel* what_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QToolButton* cancel_ = nullptr;
  QTimer* soon_ = nullptr;  // what is computed may be there before the bar is
  ExportJob* export_ = nullptr;
  HeldMemory* memory_ = nullptr;
  bool arranged_ = false;
};

}  // namespace fuseline::gui
