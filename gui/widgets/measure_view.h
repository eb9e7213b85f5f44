// Measure this: runs `fuseline measure`, here or on another machine, and shows its numbers beside
// the predictions while they come.
#pragma once

#include <filesystem>

#include "gui/model/live_measure.h"
#include "gui/widgets/charts/chart_view.h"
#include "gui/widgets/measure_process.h"
#include "gui/widgets/session.h"

class QLabel;
class QLineEdit;
class QPushButton;

namespace fuseline::gui {

Scene live_scene(const LiveChart& chart);

class MeasureView : public ChartView {
  Q_OBJECT
 public:
  // `state_folder`: where the command is remembered, and measurements are kept.
  MeasureView(Session& session, const std::filesystem::path& state_folder, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("measure"); }
  [[nodiscard]] QString title() const override { return tr("Measure"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  [[nodiscard]] bool is_busy() const override { return process_.is_running(); }
  void cancel() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  void set_command(const QString& command);
  void measure();
  [[nodiscard]] MeasureProcess& process() { return process_; }
  [[nodiscard]] const LiveChart& chart() const { return chart_; }

 private:
  void draw();
  void end(bool cancelled, const QString& why);
  void keep();

  Session& session_;
  std::filesystem::path folder_;
  QLineEdit* command_;
  QPushButton* go_;
  QLabel* state_;
  MeasureProcess process_;
  LiveRequest request_;
  LiveChart chart_;
  QString said_;  // how the last run ended
  bool wrong_ = false;
};

}  // namespace fuseline::gui
