// Two graphs side by side, that zoom and move together; what differs is coloured.
#pragma once

#include <array>

#include "gui/model/dot_layout.h"
#include "gui/model/graph_pair.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/graph_canvas.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QComboBox;
class QLabel;

namespace fuseline::gui {

class PairView : public View {
  Q_OBJECT
 public:
  PairView(Session& session, QWidget* parent);

  [[nodiscard]] QString id() const override { return "graphs"; }
  [[nodiscard]] QString title() const override { return tr("Two graphs"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void finish() override { work_.finish(); }
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override { work_.cancel(); }
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] GraphCanvas& canvas(int side) const {
    return *canvases_[static_cast<std::size_t>(side)];
  }
  [[nodiscard]] const GraphPair& pair() const { return pair_; }
  void show_runs(RunId left, RunId right);

 private:
  struct Laid {
    GraphPair pair;
    std::array<GraphLayout, 2> layouts{};
  };

  void fill_runs();
  void draw(Laid laid);
  void mark_differences();
  void follow(int side);

  QLabel* words_;
  std::array<QComboBox*, 2> runs_{};
  std::array<GraphCanvas*, 2> canvases_{};
  GraphPair pair_;
  bool following_ = false;
  Background<GraphPair, Laid> work_;
};

}  // namespace fuseline::gui
