// Sweep: time and bytes of policies over T, S, B or D, with the places where they cross.
#pragma once

#include <QTimer>
#include <map>

#include "gui/model/sweep.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"

class QSpinBox;

namespace fuseline::gui {

enum class SweepQuantity : std::uint8_t { time, bytes };

// `runs`: those of the curves, in their order, with their colours.
Scene sweep_scene(const SweepChart& chart, SweepQuantity quantity,
                  const std::vector<std::pair<RunId, Colour>>& runs);

class SweepView : public ChartView {
  Q_OBJECT
 public:
  SweepView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("sweep"); }
  [[nodiscard]] QString title() const override { return tr("Sweep"); }
  [[nodiscard]] QString hint() const override;
  // Begins a sweep a moment after the last change.
  void refresh() override;
  void prepare() override;  // sweeps if what is drawn is old
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] const SweepChart& chart() const { return chart_; }
  void sweep_over(SweepAxis axis);
  void sweep_range(int from, int to);

 private:
  QSpinBox& add_end(const QString& label, const QString& tip);
  [[nodiscard]] std::string range_key() const;
  void fill_range(const SweepRequest& request);
  void start();
  void draw();
  void show_text(const std::string& text);

  QComboBox* axis_;
  QSpinBox* from_ = nullptr;
  QSpinBox* to_ = nullptr;
  std::string range_of_;  // axis, phase and model that the range was filled for
  QTimer soon_;
  std::string asked_;  // key of the sweep that is drawn, or on its way
  SweepRequest request_;
  SweepChart chart_;
  Background<SweepRequest, SweepChart> work_;
};

}  // namespace fuseline::gui
