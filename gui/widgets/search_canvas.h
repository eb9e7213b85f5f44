// The points of a search, its front, and ghosts of the edits that could come next.
#pragma once

#include <QFont>
#include <QPointF>
#include <QRectF>
#include <QString>
#include <QWidget>
#include <optional>
#include <vector>

#include "gui/model/search_watch.h"

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
  struct Caption {
    QRectF box;
    QString text;
  };
  // Of the edits that save most, in the corner of that plot.
  [[nodiscard]] std::vector<Caption> captions(const QRectF& plot, const QFont& font) const;

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

}  // namespace fuseline::gui
