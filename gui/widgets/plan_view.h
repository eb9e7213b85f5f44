// The plan of the shown run as text, to read and to edit: its mistakes at their lines, its
// prediction beside it.
#pragma once

#include <filesystem>

#include "gui/model/plan_editor.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/text_view.h"

class QLabel;
class QListWidget;

namespace fuseline::gui {

class PlanView : public TextView {
  Q_OBJECT
 public:
  PlanView(Session& of, QWidget* parent);

  [[nodiscard]] QString id() const override { return "plan"; }
  [[nodiscard]] QString title() const override { return tr("Plan"); }
  [[nodiscard]] QString hint() const override;
  void restyle() override;
  void prepare() override { show_document(); }
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

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
  bool has_run();  // else it shows what there is
  void show_document() override;
  void show_state();
  void show_problems();
  void check();
  void take(Checked checked);
  void ask_file_to_save();

  QLabel* numbers_;
  QListWidget* problems_;
  PlanEditorText shown_;
  std::optional<Request> asked_;
  CheckedPlan checked_;
  Background<Request, Checked> work_;
};

}  // namespace fuseline::gui
