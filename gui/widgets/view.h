// What every view of the window is: a widget that draws a chart of the workbench's results, links
// its selection with all other views, and paints itself into pictures.
#pragma once

#include <QString>
#include <QWidget>
#include <vector>

#include "gui/model/selection.h"
#include "gui/model/table.h"
#include "gui/model/workbench.h"
#include "gui/widgets/theme.h"

class QPainter;

namespace fuseline::gui {

class View : public QWidget {
  Q_OBJECT
 public:
  View(Workbench& bench, QWidget* parent);

  // Stem of the files it is exported to, and name of its dock: lower case, '-'. The same always.
  [[nodiscard]] virtual QString id() const = 0;
  [[nodiscard]] virtual QString title() const = 0;           // of its dock
  [[nodiscard]] virtual QString hint() const { return {}; }  // what it shows and what can be done

  // The workbench's results or shown run changed: reads its chart anew and draws. Also called once
  // before the view is first seen. Slow data is computed elsewhere and drawn when it comes.
  virtual void refresh() = 0;
  // Selection or hovering changed; `highlight` is bench().highlighted(). Redraws no more than that.
  virtual void show_highlight(const Highlight& highlight) = 0;
  // The palette changed, or the font: colours of theme() are to be taken anew.
  virtual void restyle() = 0;

  // Begins to compute what finish() waits for, and returns at once.
  virtual void prepare() {}
  // Blocks until data that is computed in the background is there and drawn. For export.
  virtual void finish() {}
  // True while such data is awaited; the status bar says so.
  [[nodiscard]] virtual bool is_busy() const { return false; }
  virtual void cancel() {}  // stops it; what was drawn stays
  // Nobody sees it any more: the window may keep it behind another tab, where Qt has it visible.
  // What can be drawn again is given up until it is painted.
  virtual void put_away() {}

  // The picture alone, without controls, in any size and resolution; vectors for SVG and PDF. The
  // painter's logical size is `size`; the background is filled.
  virtual void paint_to(QPainter& painter, QSize size) = 0;
  // The data that is drawn, for the view's own CSV and JSON.
  [[nodiscard]] virtual std::vector<Table> tables() const = 0;

  [[nodiscard]] Theme theme() const { return Theme(palette()); }

 signals:
  // Forwarded to the workbench, which makes all views highlight it. A Thing of no kind: nothing.
  void hovered(const fuseline::gui::Thing& thing);
  void selected(const fuseline::gui::Thing& thing);
  // is_busy() or the progress of background work changed.
  void busy_changed();

 protected:
  [[nodiscard]] Workbench& bench() const { return bench_; }
  static constexpr int kPictureMargin = 14;  // px
  // Of a picture: the background, and the title in a line at the top, whose height is returned.
  int paint_title(QPainter& painter, QSize size, const QString& title) const;
  void changeEvent(QEvent* event) override;  // calls restyle()
  void leaveEvent(QEvent* event) override;   // nothing is hovered any more

 private:
  Workbench& bench_;
};

// All views of gui/widgets/charts in the order of their docks (charts/charts.cpp).
std::vector<View*> make_chart_views(Workbench& bench, QWidget* parent);

}  // namespace fuseline::gui
