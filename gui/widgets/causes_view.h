// Why is it slow: causes in order of recoverable time, each with the change that recovers it.
#pragma once

#include <QTimer>

#include "gui/model/causes.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"
#include "gui/widgets/session.h"

class QTableWidget;

namespace fuseline::gui {

// The causes as bars of the time that each alone would recover.
Scene causes_scene(const Causes& causes);

class CausesView : public ChartView {
  Q_OBJECT
 public:
  CausesView(Session& session, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("causes"); }
  [[nodiscard]] QString title() const override { return tr("Why slow"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void prepare() override { start(); }
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] const Causes& causes() const { return causes_; }

 private:
  struct Request {
    Document document;
    RunView run;
  };

  void start();
  void draw();
  void fill_list();
  void take(const Cause& cause);

  Session& session_;
  QTableWidget* list_;
  QTimer soon_;
  std::shared_ptr<const RunResult> asked_;
  Causes causes_;
  Background<Request, Causes> work_;
};

}  // namespace fuseline::gui
