// Memory hierarchy of a kernel or a block, of several runs beside each other.
#pragma once

#include "gui/model/memory_chart.h"
#include "gui/model/motion.h"
#include "gui/widgets/charts/chart_view.h"
#include "gui/widgets/charts/memory_drawing.h"

class QCheckBox;

namespace fuseline::gui {

class MemoryCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryCanvas(QWidget* parent);

  void set_charts(std::vector<MemoryChart> charts);
  [[nodiscard]] const std::vector<MemoryChart>& charts() const { return charts_; }
  void set_highlight(const Highlight& highlight);
  void paint_on(QPainter& painter, const QRect& area) const;
  // As drawn last.
  [[nodiscard]] const std::vector<MemoryPart>& parts() const { return parts_; }
  [[nodiscard]] QSize minimumSizeHint() const override { return {220, 180}; }
  [[nodiscard]] QSize sizeHint() const override { return {600, 420}; }

 signals:
  void hovered(const fuseline::gui::Thing& thing);
  void selected(const fuseline::gui::Thing& thing);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  [[nodiscard]] const MemoryPart* part_at(const QPointF& at) const;
  void hover(const Thing& thing);

  std::vector<MemoryChart> charts_;
  std::vector<MemoryPart> parts_;
  Highlight highlight_;
  Thing hovered_;
};

class MemoryView : public ChartView {
  Q_OBJECT
 public:
  MemoryView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("memory"); }
  [[nodiscard]] QString title() const override { return tr("Memory hierarchy"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  [[nodiscard]] std::vector<Table> tables() const override;
  [[nodiscard]] MemoryCanvas& canvas() const { return *canvas_; }
  // What moves in Tiles in motion, for those who want to see that.
  void follow(const std::vector<MovingKernel>& now);

 protected:
  void paint_content(QPainter& painter, const QRect& area) override;

 private:
  void fill_kernels();
  void draw();
  [[nodiscard]] std::vector<MemoryChart> moving_charts();

  QCheckBox* in_motion_;
  std::vector<MovingKernel> moving_;
  QComboBox* kernel_;  // of the shown run; first: the block
  MemoryCanvas* canvas_;
  std::vector<std::string> names_;  // of the runs of the canvas' charts
};

}  // namespace fuseline::gui
