#include "gui/model/run_machine.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace fuseline::gui {

namespace {

// In the order in which they are said.
enum Part : std::size_t { model, gpu, work, fidelity, kParts };
using Parts = std::array<std::string, kParts>;

Parts parts_of(const PredictionCase& c, const std::string& gpu_text) {
  return {c.model.title.empty() ? c.model.name : c.model.title, gpu_text,
          fuseline::describe(c.workload), std::string(name_of(c.fidelity))};
}

bool has_block(const RunView& view) { return view.result != nullptr && view.result->block; }

// A measurement has no fidelity.
Parts parts_of(const Results& results, const RunView& view) {
  Parts parts = parts_of(*view.result->block, name_of_gpu(results, view.result->block->gpu));
  if (view.run.is_measurement()) parts[fidelity].clear();
  return parts;
}

std::string joined(const Parts& parts, const std::array<bool, kParts>& wanted) {
  std::string text;
  for (std::size_t p = 0; p < kParts; ++p) {
    if (wanted[p] && !parts[p].empty()) text += (text.empty() ? "" : " · ") + parts[p];
  }
  return text;
}

}  // namespace

std::string name_of_gpu(const Results& results, const Gpu& gpu) {
  const bool shared = std::ranges::any_of(results.runs, [&](const RunView& v) {
    return has_block(v) && v.result->block->gpu.name == gpu.name &&
           v.result->block->gpu.title != gpu.title;
  });
  return shared ? gpu.title : gpu.name;
}

void tell_machines_apart(Results& results) {
  Parts common;  // the first that there is of each
  std::array<bool, kParts> differs{};
  for (const RunView& view : results.runs) {
    if (!has_block(view)) continue;
    const Parts parts = parts_of(results, view);
    for (std::size_t p = 0; p < kParts; ++p) {
      if (parts[p].empty()) continue;
      if (common[p].empty()) common[p] = parts[p];
      differs[p] = differs[p] || parts[p] != common[p];
    }
  }
  for (RunView& view : results.runs) {
    view.machine = has_block(view) ? joined(parts_of(results, view), differs) : "";
  }
}

std::string machine_line(const Run& run, const PredictionCase& block) {
  const bool unusual = !run.is_measurement() && block.fidelity != Fidelity::hierarchy;
  return joined(parts_of(block, block.gpu.title), {true, true, true, unusual});
}

}  // namespace fuseline::gui
