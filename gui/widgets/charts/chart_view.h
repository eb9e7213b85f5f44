// What the views of charts share: a row of controls, one or more plots, work in the background with
// progress and cancel, and pictures of them.
#pragma once

#include <QBoxLayout>
#include <string>
#include <vector>

#include "gui/widgets/charts/scene.h"
#include "gui/widgets/view.h"

class QComboBox;
class QProgressBar;
class QToolButton;

namespace fuseline::gui {

class Plot;

class ChartView : public View {
  Q_OBJECT
 public:
  ChartView(Workbench& bench, QWidget* parent);

  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void paint_to(QPainter& painter, QSize size) final;
  void put_away() override;

  [[nodiscard]] const std::vector<Plot*>& plots() const { return plots_; }

 protected:
  // Plots lie one under the other; side by side where there is more width than height.
  Plot& add_plot(int stretch, bool side_by_side = false);
  QComboBox& add_choice(const QString& label, const QStringList& texts, const QString& tooltip);
  [[nodiscard]] QHBoxLayout& controls() { return *controls_; }
  [[nodiscard]] QBoxLayout& body() { return *body_; }

  // Shows the bar and its button while busy; the button calls cancel().
  void show_work(bool busy, double progress, const QString& what);

  // The picture's contents in an area that text is made for.
  virtual void paint_content(QPainter& painter, const QRect& area);
  void paint_plots(QPainter& painter, const QRect& area);

  void resizeEvent(QResizeEvent* event) override;

 private:
  [[nodiscard]] bool is_side_by_side(QSize size) const;

  QHBoxLayout* controls_;
  QBoxLayout* body_;
  QProgressBar* progress_;
  QToolButton* cancel_;
  std::vector<Plot*> plots_;
  std::vector<int> stretches_;
  bool side_by_side_ = false;
};

// Why nothing can be drawn of any run; empty when something can.
std::string problem_of(const Results& results);

// What the colour of a kind, bound or role of tensors is called in legends.
std::string legend_text(ColourRole role);

}  // namespace fuseline::gui
