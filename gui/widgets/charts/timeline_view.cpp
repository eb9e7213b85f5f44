#include "gui/widgets/charts/timeline_view.h"

#include <QComboBox>
#include <QSignalBlocker>
#include <algorithm>

#include "gui/model/chart_colours.h"
#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

// Tensors that have a home in memory in any of the runs, in the graph's order, without those that
// are read once and never made.
QStringList tensors_of(const Results& results) {
  QStringList names;
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.result->plan) continue;
    const Plan& plan = *view.result->plan;
    for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
      const QString name = QString::fromStdString(plan.graph.tensors()[i].name);
      if (plan.homes[i] != Home::on_chip && !names.contains(name)) names.append(name);
    }
  }
  return names;
}

// The largest activation: what fusing is most about.
QString largest_activation(const Results& results) {
  QString name;
  Bytes most;
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.result->plan) continue;
    const Plan& plan = *view.result->plan;
    for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
      const Tensor& t = plan.graph.tensors()[i];
      if (t.role != Role::activation || plan.homes[i] == Home::on_chip || t.bytes() <= most) {
        continue;
      }
      most = t.bytes();
      name = QString::fromStdString(t.name);
    }
  }
  return name;
}

}  // namespace

TimelineView::TimelineView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      align_(&add_choice(tr("Aligned"), {tr("at the start"), tr("by shared work")},
                         tr("by shared work: GEMMs and attentions that all runs have begin at one "
                            "place"))),
      tensor_(&add_choice(tr("Tensor in L2"), {}, tr("whose part in L2 is drawn over time"))),
      work_(this,
            [](const Request& request, const std::stop_token& stop, const Progress& progress) {
              Residencies out;
              for (const RunView& view : request.runs) {
                throw_if_stopped(stop);
                out.push_back(residency_chart(view, request.tensor));
                progress(out.size(), request.runs.size());
              }
              return out;
            },
            {.done =
                 [this](Residencies charts) {
                   residency_ = std::move(charts);
                   draw_residency();
                 },
             .failed =
                 [this](const std::string& why) {
                   residency_.clear();
                   plots()[1]->set_scene(empty_scene("In L2", why));
                 },
             .changed = [this] { emit busy_changed(); }}) {
  Plot& kernels = add_plot(4);
  add_plot(3).align_with(kernels);
  tensor_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  tensor_->setMinimumContentsLength(14);
  connect(align_, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this] { refresh(); });
  connect(tensor_, QOverload<int>::of(&QComboBox::currentIndexChanged), this,
          [this] { start_residency(); });
}

QString TimelineView::hint() const {
  return tr(
      "Launches of each run in order. The colour says what sets a kernel's time; grey at its "
      "begin is the launch. Below: how much of one tensor L2 holds meanwhile.");
}

void TimelineView::align(Align align) { align_->setCurrentIndex(static_cast<int>(align)); }

void TimelineView::show_tensor(const QString& name) {
  const int at = tensor_->findText(name);
  if (at >= 0) tensor_->setCurrentIndex(at);
}

void TimelineView::fill_tensors() {
  const QSignalBlocker quiet(tensor_);
  const QString before = tensor_->currentText();
  const QStringList names = tensors_of(bench().results());
  tensor_->clear();
  tensor_->addItems(names);
  const int kept = tensor_->findText(before);
  tensor_->setCurrentIndex(kept >= 0 ? kept
                                     : tensor_->findText(largest_activation(bench().results())));
}

void TimelineView::refresh() {
  const Results& results = bench().results();
  chart_ = timeline_chart(results, static_cast<Align>(align_->currentIndex()));
  const std::string problem = problem_of(results);
  plots()[0]->set_scene(problem.empty()
                            ? timeline_scene(chart_, run_rows(bench().document(), results))
                            : empty_scene(title().toStdString(), problem));
  fill_tensors();
  start_residency();
}

void TimelineView::start_residency() {
  Request request{.runs = {}, .tensor = tensor_->currentText().toStdString()};
  for (const RunView& view : bench().results().runs) {
    if (view.ok() && !view.run.is_measurement()) request.runs.push_back(view);
  }
  if (request.runs.empty() || request.tensor.empty()) {
    work_.cancel();
    residency_.clear();
    plots()[1]->set_scene(empty_scene("In L2", "no prediction has tensors in memory"));
    return;
  }
  work_.start(std::move(request));
}

void TimelineView::draw_residency() {
  std::vector<std::string> names;
  std::vector<Colour> colours;
  for (const ResidencyChart& chart : residency_) {
    const RunView* view = bench().results().find(chart.run);
    names.push_back(view == nullptr ? "" : view->label());
    colours.push_back(colour_of_run(bench().results(), chart.run));
  }
  plots()[1]->set_scene(residency_scene(residency_, names, colours, plots()[0]->scene().x.range));
}

// A selected tensor is the one whose residency is wanted.
void TimelineView::show_highlight(const Highlight& highlight) {
  ChartView::show_highlight(highlight);
  const Thing& selected = bench().selection().selected;
  if (selected.kind == ThingKind::tensor) show_tensor(QString::fromStdString(selected.name));
}

void TimelineView::finish() { work_.finish(); }

std::vector<Table> TimelineView::tables() const {
  std::vector<Table> tables{to_table(chart_)};
  for (const ResidencyChart& chart : residency_) {
    if (chart.steps.empty()) continue;
    Table table = to_table(chart);
    const RunView* view = bench().results().find(chart.run);
    if (view != nullptr) table.name += "-" + file_stem(view->run.name);
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace fuseline::gui
