#include "gui/model/layer_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/block_editor.h"
#include "gui/model/chart_colours.h"

namespace fuseline::gui {

namespace {

constexpr double kBetweenLayers = 90, kBetweenRows = 140;  // points

std::vector<LayerBand> bands_of(const RunView& view) {
  std::vector<LayerBand> bands;
  double sum = 0;
  for (const KernelRow& row : view.result->kernels) sum += row.estimate.time.value();
  double reached = 0;
  for (const KernelRow& row : view.result->kernels) {
    const double part = sum > 0 ? row.estimate.time.value() / sum : 0;
    bands.push_back({row.estimate.name, reached, reached + part, {role_of(row.estimate.kind), 0}});
    reached += part;
  }
  return bands;
}

LayerKind kind_of(const RunView& view, const std::string& name, std::int64_t layers,
                  const std::string& dot) {
  LayerKind kind{.name = name,
                 .layers = layers,
                 .time = view.result->totals.time,
                 .graph = block_graph(view),
                 .layout = {},
                 .bands = bands_of(view)};
  kind.operators = std::ranges::count(kind.graph.nodes, false, &GraphNode::is_tensor);
  kind.layout = layout(kind.graph, dot);
  return kind;
}

}  // namespace

std::int64_t LayerStack::layers() const {
  std::int64_t sum = 0;
  for (const LayerKind& kind : kinds) sum += kind.layers;
  return sum;
}

std::int64_t LayerStack::operators() const {
  std::int64_t sum = 0;
  for (const LayerKind& kind : kinds) sum += kind.layers * kind.operators;
  return sum;
}

LayerStack layer_stack(const StackQuestion& q, ResultCache& cache, const std::stop_token& stop) {
  LayerStack stack;
  if (!q.view.ok() || q.view.result->plan == nullptr || q.view.result->block == nullptr) {
    stack.problem = block_graph(q.view).problem;
    if (stack.problem.empty()) stack.problem = "not computed yet";
    return stack;
  }
  const PredictionCase& c = *q.view.result->block;
  stack.about = subject_of(q.view);
  const Setup setup = setup_of(q.document, q.view.run);
  for (std::size_t i = 0; i < c.model.blocks.size(); ++i) {
    const BlockUse& use = c.model.blocks[i];
    if (stop.stop_requested()) throw Cancelled();
    if (i == 0) {
      stack.kinds.push_back(kind_of(q.view, use.label(), c.model.layers_of(use), q.dot));
      stack.kinds.back().is_first = true;
      continue;
    }
    if (c.workload.phase == Phase::decode && !use.decodes) continue;
    const auto leave_out = [&](const std::string& why) {
      stack.note += fmt::format("{}{} of {}: {}", stack.note.empty() ? "left out: " : "; ",
                                c.model.layers_of(use), use.label(), why);
    };
    if (q.view.run.is_measurement() || q.view.run.is_custom() || !use.tokens.empty()) {
      leave_out(use.tokens.empty() ? "this run has one kind of layers"
                                   : "its tokens are another sequence's");
      continue;
    }
    try {
      Run run = q.view.run;
      run.setup = with_block_of(setup, use.label());
      RunView other{run, result_of(q.document, run, cache), {}};
      if (!other.ok() || other.result->plan == nullptr) {
        leave_out(other.result->problem ? other.result->problem->text : "it has no plan");
        continue;
      }
      stack.kinds.push_back(kind_of(other, use.label(), c.model.layers_of(use), q.dot));
    } catch (const InputError& error) {
      leave_out(error.problem().message);
    }
  }
  stack.title = fmt::format("{}: {}, {} layers, {} operators", q.view.label(),
                            c.model.title.empty() ? c.model.name : c.model.title, stack.layers(),
                            grouped(stack.operators()));
  return stack;
}

StackPlaces stack_places(const LayerStack& stack, double ratio) {
  StackPlaces places;
  double widest = 0, highest = 0;
  for (const LayerKind& kind : stack.kinds) {
    widest = std::max(widest, kind.layout.width);
    highest = std::max(highest, kind.layout.height);
  }
  const auto count = static_cast<double>(stack.layers());
  if (count < 1) return places;
  const double width = widest + kBetweenLayers, height = highest + kBetweenRows;
  const auto columns = static_cast<std::size_t>(
      std::clamp(std::round(std::sqrt(count * ratio * height / width)), 1.0, count));
  std::size_t at = 0;
  for (std::size_t k = 0; k < stack.kinds.size(); ++k)
    for (std::int64_t i = 0; i < stack.kinds[k].layers; ++i, ++at)
      places.layers.push_back({k, static_cast<std::int64_t>(at) + 1,
                               static_cast<double>(at % columns) * width,
                               static_cast<double>(at / columns) * height});
  places.width = static_cast<double>(std::min(columns, at)) * width - kBetweenLayers;
  places.height = static_cast<double>((at + columns - 1) / columns) * height - kBetweenRows;
  return places;
}

Table to_table(const LayerStack& stack) {
  Table table{"layers", {"block", "layers", "operators", "time_us"}, {}};
  for (const LayerKind& kind : stack.kinds)
    add_row(table, {kind.name, kind.layers, kind.operators, kind.time.value() * 1e6}, stack.about);
  return table;
}

}  // namespace fuseline::gui
