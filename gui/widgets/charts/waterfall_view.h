// Waterfall: from unfused to fused, one step per fusion, down to the limit.
#pragma once

#include "gui/model/waterfall.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"

namespace fuseline::gui {

// `target`: the launches that steps correspond to.
Scene waterfall_scene(const Waterfall& chart, const RunView& target);

class WaterfallView : public ChartView {
  Q_OBJECT
 public:
  WaterfallView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("waterfall"); }
  [[nodiscard]] QString title() const override { return tr("Waterfall"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  [[nodiscard]] std::vector<Table> tables() const override;

 private:
  void fill_targets();
  void start();

  QComboBox* target_;
  std::shared_ptr<const RunResult> shown_;  // what the waterfall is, or will be, of
  RunView view_;
  Waterfall chart_;
  Background<RunView, Waterfall> work_;
};

}  // namespace fuseline::gui
