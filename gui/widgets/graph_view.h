// The block graph: click an edge to fuse or split, or draw a lasso around operators.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "gui/model/best_fusion.h"
#include "gui/model/block_graph.h"
#include "gui/model/dot_layout.h"
#include "gui/model/edge_chances.h"
#include "gui/model/latest_wins.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/edit_bar.h"
#include "gui/widgets/graph_canvas.h"
#include "gui/widgets/minimap.h"
#include "gui/widgets/operator_drag.h"
#include "gui/widgets/parts_button.h"
#include "gui/widgets/view.h"

class QComboBox;
class QMenu;
class QToolButton;

namespace fuseline::gui {

class GraphView : public View {
  Q_OBJECT
 public:
  // `dot`: the program that lays the graph out.
  GraphView(Session& session, QWidget* parent, std::string dot = "dot");
  ~GraphView() override;

  [[nodiscard]] QString id() const override { return "graph"; }
  [[nodiscard]] QString title() const override { return tr("Block graph"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return waiting_ || search_.is_busy(); }
  void cancel() override { search_.cancel(); }
  // Looks for the best fusion of the shown run's block and adds it as a run.
  void search_best(double seconds = kSearchSeconds);
  void finish_search() { search_.finish(); }
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] RunId shown_run() const { return bench().shown_run(); }
  [[nodiscard]] GraphCanvas& canvas() const { return *canvas_; }
  [[nodiscard]] EditBar& edit_bar() const { return *bar_; }
  [[nodiscard]] OperatorDrag& drag() const { return *drag_; }
  [[nodiscard]] PartsButton& parts() const { return *parts_; }
  [[nodiscard]] Minimap& map() const { return *map_; }
  // In the order of the block, where it ends with a residual sum; empty: none is known yet, or none
  // can be fused.
  [[nodiscard]] std::optional<OnChipEdge> last_fusable_edge() const;

 signals:
  // A search began; what it tries comes into the watch, on its own thread.
  void search_began(std::shared_ptr<fuseline::gui::SearchWatch> watch,
                    const fuseline::gui::Run& run);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Inbox;
  struct ChanceRequest {
    Document document;
    RunId run;
    std::vector<OnChipEdge> edges;
    std::string of;  // chances_key()
  };
  struct SearchRequest {
    Document document;
    Run run;
    double seconds = 0;
    std::shared_ptr<SearchWatch> watch{};
  };
  struct Chances {
    std::string of;
    std::map<std::string, EdgeChance> chances;
  };
  using Layouter = LatestWins<BlockGraph, GraphLayout>;

  void make_tools();
  void connect_drag();
  void fill_runs();
  void fill_rewrites();
  void take_layout();
  void draw(const GraphLayout& layout);
  void set_waiting(bool waiting);
  void judge_edges(const RunView& view);
  [[nodiscard]] std::string chances_key(const RunView& view) const;
  void place_bar();
  void take_best(const BestFusion& best);

  Session& session_;
  QComboBox* runs_;
  QToolButton* rewrites_;
  PartsButton* parts_;
  EditBar* bar_;
  GraphCanvas* canvas_;
  OperatorDrag* drag_;  // the canvas's
  Minimap* map_;
  bool landscape_ = false;
  BlockGraph graph_;
  std::string drawn_;                         // dot's text of what is drawn
  std::map<std::string, GraphLayout> known_;  // by dot's text
  bool waiting_ = false;
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<Layouter> layouter_;  // after what it uses
  Chances chances_;
  Background<ChanceRequest, Chances> judge_;
  Background<SearchRequest, BestFusion> search_;
};

}  // namespace fuseline::gui
