// Timeline: kernels of each run in order, coloured by what sets their time; what L2 holds of one
// tensor meanwhile.
#pragma once

#include "gui/model/run_rows.h"
#include "gui/model/timeline_chart.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"

namespace fuseline::gui {

// `rows`: differences to the baseline.
Scene timeline_scene(const TimelineChart& chart, const std::vector<RunRow>& rows);
// Of several runs: a curve each, `colours` beside them. `axis`: µs.
Scene residency_scene(const std::vector<ResidencyChart>& charts,
                      const std::vector<std::string>& names, const std::vector<Colour>& colours,
                      Range axis);

class TimelineView : public ChartView {
  Q_OBJECT
 public:
  TimelineView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("timeline"); }
  [[nodiscard]] QString title() const override { return tr("Timeline"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override { work_.cancel(); }
  [[nodiscard]] std::vector<Table> tables() const override;

  void align(Align align);
  void show_tensor(const QString& name);

 private:
  struct Request {
    std::vector<RunView> runs;
    std::string tensor;
  };
  using Residencies = std::vector<ResidencyChart>;

  void fill_tensors();
  void start_residency();
  void draw_residency();

  QComboBox* align_;
  QComboBox* tensor_;
  TimelineChart chart_;
  Residencies residency_;
  Background<Request, Residencies> work_;
};

}  // namespace fuseline::gui
