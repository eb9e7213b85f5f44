// The tools over the block graph: which run, its rewrites, its parts, search, zoom.
#include <QAction>
#include <QMenu>
#include <QSignalBlocker>
#include <QToolBar>
#include <QToolButton>
#include <algorithm>

#include "base/error.h"
#include "gui/model/fusion_edits.h"
#include "gui/widgets/graph_view.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/short_combo.h"
#include "model/blocks/block.h"

namespace fuseline::gui {

namespace {

// The block before rewrites and what is chosen of it; empty when the run's setup is wrong.
std::vector<RewriteChoice> rewrites_of(const Document& document, const Run& run) {
  if (run.is_measurement()) return {};
  try {
    const PredictionCase c = resolve(setup_of(document, run));
    const Graph block = build_block(c.model, c.workload);
    const CustomFusion custom =
        run.is_custom() ? run.custom : custom_like(make_plan(run.policy, block), block);
    return rewrite_choices(block, custom);
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace

void GraphView::make_tools() {
  auto* tools = new QToolBar(this);
  tools->setObjectName("graph-tools");
  runs_->setObjectName("graph-run");
  runs_->setToolTip(tr("The run that graph, kernel table and waterfall show"));
  runs_->setMinimumContentsLength(11);
  connect(runs_, QOverload<int>::of(&QComboBox::activated), this, [this](int index) {
    const RunId run{runs_->itemData(index).toInt()};
    session_.show_run(run);
    emit selected(run_thing(run));
  });
  tools->addWidget(runs_);
  rewrites_->setText(tr("Rewrites"));
  rewrites_->setObjectName("graph-rewrites");
  rewrites_->setPopupMode(QToolButton::InstantPopup);
  rewrites_->setMenu(new QMenu(rewrites_));
  rewrites_->menu()->setToolTipsVisible(true);
  rewrites_->setToolTip(tr("Changes of the graph that keep its algebra and make fusions legal"));
  connect(rewrites_->menu(), &QMenu::aboutToShow, this, &GraphView::fill_rewrites);
  tools->addWidget(rewrites_);
  QAction* best = tools->addAction(tr("Best fusion"));
  best->setObjectName("best-fusion");
  best->setToolTip(tr("Search the best fusion of this block, and add it as a run; takes up to %1 s")
                       .arg(kSearchSeconds));
  connect(best, &QAction::triggered, this, [this] { search_best(); });
  tools->addWidget(parts_);
  connect(parts_, &PartsButton::changed, this, [this] { refresh(); });
  connect(&canvas_->graph(), &GraphScene::part_clicked, parts_, &PartsButton::toggle);
  QAction* landscape = tools->addAction(tr("Landscape"));
  landscape->setObjectName("graph-landscape");
  landscape->setCheckable(true);
  landscape->setToolTip(tr("From left to right in place of from top to bottom"));
  connect(landscape, &QAction::toggled, this, [this](bool on) {
    landscape_ = on;
    refresh();
  });
  QAction* lasso = tools->addAction(tr("Lasso"));
  lasso->setCheckable(true);
  lasso->setToolTip(tr("Drag around operators to fuse them (also Shift+drag)"));
  connect(lasso, &QAction::toggled, canvas_, &GraphCanvas::set_lasso);
  QAction* fit = tools->addAction(tr("Fit"));
  fit->setToolTip(tr("Show the whole block (0)"));
  connect(fit, &QAction::triggered, canvas_, &GraphCanvas::fit);
  QAction* closer = tools->addAction("+");
  closer->setToolTip(tr("Zoom in (+)"));
  connect(closer, &QAction::triggered, canvas_, [this] { canvas_->zoom(1.25); });
  QAction* farther = tools->addAction("−");
  farther->setToolTip(tr("Zoom out (−)"));
  connect(farther, &QAction::triggered, canvas_, [this] { canvas_->zoom(0.8); });
  layout()->addWidget(tools);
}

void GraphView::fill_runs() {
  const QSignalBlocker quiet(runs_);
  runs_->clear();
  for (const Run& run : bench().document().runs.all()) {
    const RunView* view = bench().results().find(run.id);
    runs_->addItem(to_qt(view == nullptr || view->run.name != run.name ? run.name : view->label()),
                   run.id.value);
    if (run.id == bench().shown_run()) runs_->setCurrentIndex(runs_->count() - 1);
  }
}

void GraphView::fill_rewrites() {
  QMenu* menu = rewrites_->menu();
  menu->clear();
  qDeleteAll(menu->findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly));
  const Document& document = bench().document();
  const Run* run = document.runs.find(bench().shown_run());
  if (run != nullptr) {
    std::vector<RewriteChoice> choices = rewrites_of(document, *run);
    // Those that can be chosen first; the others where they are not in the way.
    std::stable_partition(choices.begin(), choices.end(),
                          [](const RewriteChoice& choice) { return choice.can_toggle; });
    QMenu* others = nullptr;
    for (const RewriteChoice& choice : choices) {
      if (!choice.can_toggle && others == nullptr) others = new QMenu(menu);
      QMenu* where = choice.can_toggle ? menu : others;
      QAction* action = where->addAction(to_qt(choice.label));
      action->setObjectName(to_qt("rewrite-" + choice.name));
      action->setCheckable(true);
      action->setChecked(choice.on);
      action->setEnabled(choice.can_toggle);
      action->setToolTip(to_qt(choice.name + (choice.can_toggle ? "" : ": " + choice.why_not)));
      connect(action, &QAction::triggered, this,
              [this, name = choice.name] { session_.toggle_rewrite(name); });
    }
    if (others != nullptr) {
      others->setToolTipsVisible(true);
      others->setTitle(tr("Not here (%1)").arg(others->actions().size()));
      if (!menu->isEmpty()) menu->addSeparator();
      menu->addMenu(others);
    }
  }
  if (menu->isEmpty()) menu->addAction(tr("Of predictions only"))->setEnabled(false);
}

}  // namespace fuseline::gui
