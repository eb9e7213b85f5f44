// HBM traffic: stacked bars by kernel or by tensor, predicted beside measured.
#pragma once

#include "gui/model/traffic_chart.h"
#include "gui/widgets/charts/chart_view.h"

namespace fuseline::gui {

Scene traffic_scene(const TrafficChart& chart);

class TrafficView : public ChartView {
  Q_OBJECT
 public:
  TrafficView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("traffic"); }
  [[nodiscard]] QString title() const override { return tr("HBM traffic"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  void stack_by(StackBy by);

 private:
  QComboBox* by_;
  TrafficChart chart_;
};

}  // namespace fuseline::gui
