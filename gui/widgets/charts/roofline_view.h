// Roofline of one memory level: kernels as points under the machine's ceilings, arrows from the
// baseline.
#pragma once

#include "gui/model/roofline_chart.h"
#include "gui/widgets/charts/chart_view.h"

class QCheckBox;

namespace fuseline::gui {

// `kernels`: their points and arrows too, not only those of the blocks.
Scene roofline_scene(const RooflineChart& chart, const Results& results, bool kernels = true,
                     RunId shown = {});

class RooflineView : public ChartView {
  Q_OBJECT
 public:
  RooflineView(Workbench& bench, QWidget* parent, MemoryLevel level);

  [[nodiscard]] QString id() const override;
  [[nodiscard]] QString title() const override;
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  [[nodiscard]] std::vector<Table> tables() const override;

 private:
  MemoryLevel level_;
  QCheckBox* kernels_;
  RooflineChart chart_;
};

}  // namespace fuseline::gui
