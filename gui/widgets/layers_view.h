// All layers of the model in one graph, under the plan of the shown run.
#pragma once

#include <optional>

#include "gui/model/layer_stack.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/layers_canvas.h"
#include "gui/widgets/view.h"

class QLabel;

namespace fuseline::gui {

class LayersView : public View {
  Q_OBJECT
 public:
  LayersView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return "layers"; }
  [[nodiscard]] QString title() const override { return tr("All layers"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override { canvas_->restyle(); }
  void prepare() override { refresh(); }
  void finish() override { work_.finish(); }
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] LayersCanvas& canvas() const { return *canvas_; }

 private:
  void take(LayerStack stack);

  LayersCanvas* canvas_;
  QLabel* what_;
  std::shared_ptr<const RunResult> asked_;
  Background<StackQuestion, LayerStack> work_;
};

}  // namespace fuseline::gui
