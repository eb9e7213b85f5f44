// Best fusion while it searches: each plan that was tried as a point of time and HBM bytes, the
// front that grows, and from the best so far the next edits with what they save.
#pragma once

#include <QTimer>
#include <memory>
#include <optional>
#include <vector>

#include "gui/model/search_watch.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/search_canvas.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QLabel;
class QToolButton;

namespace fuseline::gui {

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
