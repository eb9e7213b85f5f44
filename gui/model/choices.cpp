#include "gui/model/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/toml_file.h"
#include "model/config/model_files.h"
#include "sim/gpu/standing.h"

namespace fuseline::gui {

std::vector<Choice> model_choices() {
  std::vector<Choice> choices;
  for (const std::string& name : model_names()) {
    const ModelConfig c = load_model(name);
    choices.push_back(
        {.value = name,
         .text = c.title.empty() ? name : c.title,
         .tooltip = fmt::format("{} layers, D = {}, F = {}, {} heads, {} key/value "
                                "heads of {}",
                                c.layers, grouped(c.D), grouped(c.F), c.H, c.Hkv, c.d),
         .why_not = {}});
  }
  return choices;
}

namespace {

// What may be thought of its predictions, on a line of its own.
std::string standing_line(const Gpu& gpu) {
  switch (standing_of(gpu)) {
    case Standing::fitted:
      return "\nfitted: constants were fitted on this hardware";
    case Standing::checked: {
      std::string text = "\nchecked: no constant was fitted on this hardware, but measured were";
      for (const GpuCheck& check : gpu.checks) text += "\n" + describe(check);
      return text;
    }
    case Standing::uncalibrated:
      break;
  }
  return "\nuncalibrated: no constant was fitted on this hardware";
}

}  // namespace

std::vector<Choice> gpu_choices() {
  std::vector<Choice> choices;
  for (const std::string& name : gpu_names()) {
    const Gpu g = load_gpu(name);
    choices.push_back({.value = name,
                       .text = g.title,
                       .tooltip = fmt::format(
                           "{} SMs, {:.0f} TFLOP/s bf16, HBM {:.2f} TB/s, L2 {:.0f} MiB{}",
                           g.sm_count, g.tensor_bf16.value() / 1e12, g.hbm_bandwidth.value() / 1e12,
                           g.l2_capacity.as_double() / (1 << 20), standing_line(g)),
                       .why_not = {}});
  }
  return choices;
}

std::vector<Choice> policy_choices(Phase phase) {
  std::vector<Choice> choices;
  for (const PolicyInfo& p : policies()) {
    const bool enabled = phase != Phase::train || p.trains;
    choices.push_back({.value = p.name,
                       .text = p.name,
                       .tooltip = "imitates " + p.imitates + "\nfuses " + p.fuses,
                       .enabled = enabled,
                       .why_not = enabled ? "" : "it has no plan for the backward pass"});
  }
  choices.push_back({.value = kCustomPolicy,
                     .text = kCustomPolicy,
                     .tooltip = "the edges that you keep on chip",
                     .why_not = {}});
  return choices;
}

std::vector<Run> measured_runs(const Measurements& measurements, const Setup& setup) {
  const PredictionCase c = resolve(setup);
  std::vector<Run> runs;
  if (measurements.meta.gpu != c.gpu.name) return runs;
  const auto offer = [&](const BlockCase& block) {
    const bool fits = same_case(block, {c.model.name, block.execution, c.workload});
    if (!fits || std::ranges::find(runs, block.execution, &Run::policy) != runs.end()) return;
    runs.push_back({.policy = block.execution, .measurements = measurements.path});
  };
  for (const MeasuredBlock& b : measurements.blocks) offer(b.block);
  for (const MeasuredTrace& t : measurements.traces) offer(t.block);
  return runs;
}

FileKind kind_of_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error) || path.extension() == ".csv") {
    static_cast<void>(load_measurements(path.string()));
    return FileKind::measurements;
  }
  if (path.extension() == ".json") {
    static_cast<void>(load_model(path.string()));
    return FileKind::model;
  }
  const TomlTable table = TomlTable::load(path);
  if (table.has("sm_count") || table.has("architecture")) return FileKind::gpu;
  if (table.has("family") || table.has("block") || table.has("blocks") || table.has("D"))
    return FileKind::model;
  if (table.has("model") && table.has("gpu")) return FileKind::session;
  throw InputError({.file = path.string(),
                    .message = "is nothing that can be opened",
                    .allowed = "a scenario, a model (TOML or config.json), a GPU, or a folder or "
                               "CSV file of measurements"});
}

}  // namespace fuseline::gui
