// The whole model: what prefill and decode take, part by part, and whether it fits in memory.
#pragma once

#include <QTimer>

#include "gui/model/whole_model.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"

class QDoubleSpinBox;

namespace fuseline::gui {

Scene whole_model_scene(const WholeModel& chart, const Results& results);
Scene memory_scene(const WholeModel& chart);

class WholeModelView : public ChartView {
  Q_OBJECT
 public:
  WholeModelView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("whole-model"); }
  [[nodiscard]] QString title() const override { return tr("Whole model"); }
  [[nodiscard]] QString hint() const override;
  // Begins to compute a moment after the last change.
  void refresh() override;
  void prepare() override { start(); }
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] const WholeModel& chart() const { return chart_; }

 private:
  void start();
  void draw();
  void show_text(const std::string& text);

  QDoubleSpinBox* price_;
  QTimer soon_;
  std::optional<WholeModelRequest> asked_;  // what is drawn, or on its way
  WholeModel chart_;
  Background<WholeModelRequest, WholeModel> work_;
};

// A price of the GPU an hour; 0: none.
QDoubleSpinBox* price_box(QWidget* parent);
std::optional<MoneyPerHour> price_of(const QDoubleSpinBox& box);

}  // namespace fuseline::gui
