// The plan of the shown run as text, to read and to edit: its mistakes at their lines, its
// prediction beside it.
#pragma once

#include <QTimer>
#include <filesystem>

#include "gui/model/plan_editor.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QLabel;
class QListWidget;
class QToolButton;

namespace fuseline::gui {

class CodeEdit;

class PlanView : public View {
  Q_OBJECT
 public:
  PlanView(Session& session, QWidget* parent);

  [[nodiscard]] QString id() const override { return "plan"; }
  [[nodiscard]] QString title() const override { return tr("Plan"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void prepare() override { show_document(); }
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] CodeEdit& edit() const { return *edit_; }
  [[nodiscard]] const PlanEditorText& shown() const { return shown_; }
  [[nodiscard]] const CheckedPlan& checked() const { return checked_; }
  void save_as(const std::filesystem::path& path);

 private:
  struct Request {
    RunId run;
    Setup setup;
    std::string text, name;
    friend bool operator==(const Request&, const Request&) = default;
  };
  struct Checked {
    RunId run;
    std::string text;
    CheckedPlan plan;
  };

  void type(const QString& text);
  void show_document();
  void show_state();
  void show_problems();
  void check();
  void take(Checked checked);
  void ask_file_to_save();

  Session& session_;
  QLabel *state_, *numbers_;
  QToolButton *save_, *reset_;
  CodeEdit* edit_;
  QListWidget* problems_;
  bool stale_ = false;  // nobody saw the view when the document changed
  QTimer pause_;        // behind which the next word is a step of its own to undo
  PlanEditorText shown_;
  std::optional<Request> asked_;
  CheckedPlan checked_;
  Background<Request, Checked> work_;
};

}  // namespace fuseline::gui
