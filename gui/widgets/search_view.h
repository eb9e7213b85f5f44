// Best fusion while it searches: each plan that was tried as a point of time and HBM bytes, the
// front that grows, and from the best so far the next edits with what they save.
#pragma once

#include <QTimer>
#include <memory>
#include <optional>
#include <vector>

#include "gui/model/search_watch.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QLabel;
class QToolButton;

namespace fuseline::gui {

class SearchCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit SearchCanvas(QWidget* parent);

  void show_state(SearchState state, std::vector<NextEdit> next);
  [[nodiscard]] const SearchState& state() const { return state_; }
  [[nodiscard]] const std::vector<NextEdit>& next() const { return next_; }
  void paint_on(QPainter& painter, const QRectF& area) const;
  // Those that are runs or edits, in the order of the arrow keys.
  [[nodiscard]] QPointF place_of_point(std::size_t point) const;
  [[nodiscard]] QPointF place_of_next(std::size_t edit) const;

 signals:
  void point_chosen(std::size_t point);
  void next_chosen(std::size_t edit);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;  // tooltips

 private:
  struct Axes {
    QRectF plot;
    double low_time = 0, high_time = 1, low_hbm = 0, high_hbm = 1;
    [[nodiscard]] QPointF at(Seconds time, Bytes hbm) const;
  };
  [[nodiscard]] Axes axes(const QRectF& area) const;
  struct Target {
    bool is_edit = false;
    std::size_t index = 0;
  };
  [[nodiscard]] std::vector<Target> targets() const;
  [[nodiscard]] std::optional<Target> target_at(QPointF at) const;
  [[nodiscard]] QString text_of(const Target& target) const;
  void choose(const Target& target);

  SearchState state_;
  std::vector<NextEdit> next_;
  int focus_ = -1;  // of targets()
};

class SearchView : public View {
  Q_OBJECT
 public:
  SearchView(Session& session, QWidget* parent);

  [[nodiscard]] QString id() const override { return "search"; }
  [[nodiscard]] QString title() const override { return tr("Search"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override {}
  void show_highlight(const Highlight&) override {}
  void restyle() override { canvas_->update(); }
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override { work_.cancel(); }
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  // A search of that run has begun; it fills the watch.
  void follow(std::shared_ptr<SearchWatch> watch, const Run& run);
  [[nodiscard]] SearchCanvas& canvas() const { return *canvas_; }

 signals:
  void start_requested();

 private:
  void look();
  void show_text(const SearchState& state);
  void ask_next(const CustomFusion& custom);
  [[nodiscard]] Run run_of(const CustomFusion& custom, const std::string& name) const;

  Session& session_;
  QLabel* text_;
  QToolButton* start_;
  SearchCanvas* canvas_;
  std::shared_ptr<SearchWatch> watch_;
  Run run_;
  QTimer timer_;
  std::size_t seen_ = 0;
  std::optional<CustomFusion> asked_;
  std::vector<NextEdit> next_;
  Background<NextQuestion, std::vector<NextEdit>> work_;
};

}  // namespace fuseline::gui
