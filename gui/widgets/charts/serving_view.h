// What one GPU serves: tokens a second, time of a step, cost and memory over batch and context.
#pragma once

#include <QTimer>

#include "gui/model/serving.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"

class QDoubleSpinBox;

namespace fuseline::gui {

Scene serving_scene(const ServingMap& map, ServingQuantity quantity, RunId run);

class ServingView : public ChartView {
  Q_OBJECT
 public:
  ServingView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("serving"); }
  [[nodiscard]] QString title() const override { return tr("Serving"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void prepare() override { start(); }
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] const ServingMap& map() const { return map_; }
  void show_quantity(ServingQuantity quantity);

 private:
  void start();
  void draw();
  void show_text(const std::string& text);

  QComboBox* quantity_;
  QDoubleSpinBox* price_;
  QTimer soon_;
  std::optional<ServingRequest> asked_;
  ServingMap map_;
  Background<ServingRequest, ServingMap> work_;
};

}  // namespace fuseline::gui
