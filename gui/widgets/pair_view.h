// Two graphs side by side, that zoom and move together; what differs is coloured.
#pragma once

#include <array>

#include "gui/model/dot_layout.h"
#include "gui/model/graph_pair.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/graph_canvas.h"
#include "gui/widgets/minimap.h"
#include "gui/widgets/parts_button.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QBoxLayout;
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
  [[nodiscard]] PartsButton& parts() const { return *parts_; }
  [[nodiscard]] Minimap& map(int side) const { return *maps_[static_cast<std::size_t>(side)]; }
  void show_runs(RunId left, RunId right);

 private:
  struct Request {
    GraphPair pair;
    std::set<std::string> closed;  // parts
    bool landscape = false;
  };
  struct Laid {
    GraphPair pair;
    std::set<std::string> closed{};
    std::array<BlockGraph, 2> graphs{};  // as they are drawn
    std::array<GraphLayout, 2> layouts{};
  };

  void fill_runs();
  void make_tools();
  void draw(Laid laid);
  void mark_differences();
  void follow(int side);

  QLabel* words_;
  std::array<QComboBox*, 2> runs_{};
  std::array<GraphCanvas*, 2> canvases_{};
  std::array<Minimap*, 2> maps_{};
  PartsButton* parts_;
  QToolButton* landscape_;
  QBoxLayout* sides_;
  GraphPair pair_;
  std::set<std::string> closed_;  // of what is drawn
  bool following_ = false;
  Background<Request, Laid> work_;
};

}  // namespace fuseline::gui
