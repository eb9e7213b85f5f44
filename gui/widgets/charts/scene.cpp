#include "gui/widgets/charts/scene.h"

#include <algorithm>
#include <cmath>

namespace fuseline::gui {

void add_to_legend(Scene& scene, LegendEntry entry) {
  if (std::ranges::find(scene.legend, entry) == scene.legend.end()) {
    scene.legend.push_back(std::move(entry));
  }
}

AxisSpec row_axis(std::size_t count) {
  return {.label = {},
          .range = {-0.5, static_cast<double>(std::max<std::size_t>(count, 1)) - 0.5},
          .zooms = false};
}

Range snug_range(double most, double high) {
  const double step = nice_above(most / 8);
  return {0, std::min(high, std::ceil(most * 1.005 / step) * step)};
}

std::string spoken(const Scene& scene) {
  if (!scene.problem.empty()) return scene.problem;
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  };
  for (const Row& row : scene.rows) {
    std::string said = row.text;
    for (const std::string& part : {row.result, row.result_note, row.note})
      if (!part.empty()) said += " " + part;
    add(said);
  }
  if (scene.rows.empty())
    for (const Mark& mark : scene.marks) add(mark.label);
  // Curves without names of their own have them in the legend.
  if (text.empty())
    for (const LegendEntry& entry : scene.legend) add(entry.text);
  add(scene.footnote);
  return text;
}

Scene empty_scene(std::string title, std::string problem) {
  Scene scene;
  scene.title = std::move(title);
  scene.problem = std::move(problem);
  return scene;
}

bool corresponds(const Highlight& h, const Thing& thing,
                 const std::vector<std::string>& operators) {
  if (std::ranges::any_of(operators, [&](const auto& op) { return h.operators.contains(op); })) {
    return true;
  }
  switch (thing.kind) {
    case ThingKind::none:
      return false;
    case ThingKind::op:
      return h.operators.contains(thing.name);
    case ThingKind::tensor:
      return h.tensors.contains(thing.name);
    case ThingKind::edge:
      return h.edges.contains(edge_text(thing.edge));
    case ThingKind::kernel: {
      const auto launches = h.kernels.find(thing.run);
      // A run that is named without any of its kernels stands for all of them.
      if (launches == h.kernels.end()) return h.runs.contains(thing.run);
      return launches->second.contains(thing.kernel);
    }
    case ThingKind::level:
      return h.levels.contains(thing.level);
    case ThingKind::run:
      return h.runs.contains(thing.run);
  }
  return false;
}

}  // namespace fuseline::gui
