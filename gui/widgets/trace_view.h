// A profiler's trace beside the plan that it is of, kernel by kernel.
#pragma once

#include <filesystem>

#include "gui/model/trace_import.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"
#include "gui/widgets/session.h"

class QComboBox;
class QLabel;
class QPushButton;
class QTableWidget;

namespace fuseline::gui {

Scene trace_scene(const TraceChart& chart);

class TraceMatcher;

class TraceView : public ChartView {
  Q_OBJECT
 public:
  // `state_folder`: where traces are kept as measurements.
  TraceView(Session& session, const std::filesystem::path& state_folder, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("trace"); }
  [[nodiscard]] QString title() const override { return tr("Trace"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  void open(const std::filesystem::path& file);
  void keep();  // as a measurement, whose run is added to the session
  [[nodiscard]] const TraceChart& chart() const { return chart_; }
  // By hand: the launches are that kernel of the plan, or none of it.
  void match(const std::vector<std::size_t>& launches, std::optional<std::size_t> kernel);
  void take_match_back();  // the last one

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void start();
  void draw();
  void show_judged();
  // Too low for a list under the chart: a line says what would be in it.
  [[nodiscard]] bool is_low() const;
  void fill_rest();
  void show_text(const std::string& text);
  void choose_file();

  Session& session_;
  std::filesystem::path folder_;
  QComboBox* policy_;
  QPushButton *open_, *keep_;
  QLabel* judged_;
  QTableWidget* rest_;
  TraceMatcher* matcher_;
  std::vector<std::shared_ptr<const TracedBlock>> before_;  // each match by hand
  std::string file_;
  std::optional<TraceRequest> asked_;
  std::shared_ptr<const TracedBlock> traced_;
  TraceChart chart_;
  Background<TraceRequest, std::shared_ptr<const TracedBlock>> work_;
};

}  // namespace fuseline::gui
