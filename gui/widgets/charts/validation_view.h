// Validation: predicted against measured with a band of ±10 %, and the table of errors.
#pragma once

#include "gui/model/validation_chart.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"

class QCheckBox;
class QPushButton;

namespace fuseline::gui {

class ErrorTableWidget;

Scene validation_scene(const ValidationChart& chart, std::size_t scatter);

class ValidationView : public ChartView {
  Q_OBJECT
 public:
  ValidationView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("validation"); }
  [[nodiscard]] QString title() const override { return tr("Validation"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void restyle() override;
  void prepare() override;  // judges all measurements, if that was not done yet
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override { work_.cancel(); }
  [[nodiscard]] std::vector<Table> tables() const override;

  void judge_all();

 protected:
  void paint_content(QPainter& painter, const QRect& area) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Request {
    Setup setup;
    std::string measurements;
    friend bool operator==(const Request&, const Request&) = default;
  };
  struct Judged {
    ErrorTable errors;
    ValidationChart chart;
    Gpu gpu;
  };

  [[nodiscard]] Request request() const;
  void show_chart(ValidationChart chart);
  void draw();
  void fill_sources();
  void share_room();

  QComboBox* quantity_;
  QComboBox* source_;
  QCheckBox* as_table_;
  QPushButton* judge_;
  ErrorTableWidget* table_;
  ValidationChart chart_;
  std::optional<Judged> judged_;
  std::optional<Request> judged_request_;  // what judged_ is, or will be, of
  Background<Request, Judged> work_;
};

}  // namespace fuseline::gui
