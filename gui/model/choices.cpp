#include "gui/model/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "base/toml_file.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/config/model_files.h"
#include "sim/gpu/code_rate.h"
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

std::vector<Choice> block_choices(const Setup& setup) {
  std::vector<Choice> choices;
  std::vector<std::string> kinds;
  if (!setup.model.empty()) {
    const ModelConfig model = load_model(setup.model);
    for (const BlockUse& use : model.blocks) kinds.push_back(use.label());
    choices.push_back({.value = "",
                       .text = model.title + ": " + kinds.front(),
                       .tooltip = "the model's own block",
                       .why_not = {}});
    if (kinds.size() > 1)
      for (const BlockUse& use : model.blocks)
        choices.push_back({.value = use.label(),
                           .text = fmt::format("{} ({} layers)", use.label(), model.layers_of(use)),
                           .tooltip = "one kind of the model's layers alone",
                           .why_not = {}});
  }
  for (const std::string& name : block_names())
    if (std::ranges::find(kinds, name) == kinds.end())
      choices.push_back({.value = name,
                         .text = name,
                         .tooltip = "shipped: scenarios/blocks/" + name + ".block",
                         .why_not = {}});
  const std::string& now = setup.change.block;
  if (std::ranges::find(choices, now, &Choice::value) == choices.end())
    choices.push_back({.value = now,
                       .text = std::filesystem::path(now).filename().string(),
                       .tooltip = now,
                       .why_not = {}});
  return choices;
}

std::string format_value(const Setup& setup, FormatOf of) {
  const Formats& formats = setup.workload.formats;
  switch (of) {
    case FormatOf::weights:
      return formats.weights.name();
    case FormatOf::activations:
      return formats.activations.name();
    case FormatOf::cache:
      break;
  }
  return formats.cache.name();
}

std::string format_text(const Workload& workload, FormatOf of) {
  switch (of) {
    case FormatOf::weights:
      return weights_text(workload);
    case FormatOf::activations:
      return activations_text(workload);
    case FormatOf::cache:
      break;
  }
  return cache_text(workload);
}

Setup with_format(Setup setup, FormatOf of, const std::string& value) {
  Formats& formats = setup.workload.formats;
  const std::string plain = name_of(setup.workload.dtype);
  const std::string text = value.empty() ? plain : value;
  switch (of) {
    case FormatOf::weights:
      formats.weights = parse_stored_weight(text, "weights", plain);
      // Codes of activations are multiplied by weights of their own kind.
      if (formats.activations.quantised() &&
          formats.weights.name() != weights_for(formats.activations))
        formats.activations = {};
      break;
    case FormatOf::activations:
      formats.activations = parse_stored_activation(text, "activations", plain);
      if (formats.activations.quantised())
        formats.weights = parse_stored_weight(weights_for(formats.activations), "weights", plain);
      break;
    case FormatOf::cache:
      formats.cache = parse_stored_cache(text, "kv", plain);
      break;
  }
  const PredictionCase c = resolve(setup);
  if (c.workload.formats.activations.quantised())
    static_cast<void>(code_rate(c.gpu, c.workload.formats.activations.element()));
  static_cast<void>(build_block(c.model, c.workload));
  return setup;
}

std::vector<Choice> format_choices(const Setup& setup, FormatOf of) {
  std::vector<std::string> names = of == FormatOf::weights       ? weight_format_names()
                                   : of == FormatOf::activations ? activation_format_names()
                                                                 : cache_format_names();
  const std::string now = format_value(setup, of);
  if (!now.empty() && std::ranges::find(names, now) == names.end()) names.push_back(now);
  Setup plain = setup;
  plain.workload.formats = {};
  const PredictionCase c = resolve(plain);
  const std::string stored = format_text(c.workload, of);
  const bool of_file = stored != name_of(c.workload.dtype);
  std::vector<Choice> choices{
      {.value = "",
       .text = of_file ? stored + ", as the model is stored" : stored,
       .tooltip = of_file ? "what the model's file says" : "the type of all tensors",
       .why_not = {}}};
  for (const std::string& name : names) {
    Choice choice{.value = name, .text = name, .tooltip = {}, .why_not = {}};
    try {
      static_cast<void>(with_format(setup, of, name));
    } catch (const InputError& error) {
      const InputProblem& p = error.problem();
      choice.enabled = false;
      choice.why_not = (p.value.empty() ? "" : p.value + ": ") + p.message;
      choice.tooltip = choice.why_not;
    }
    choices.push_back(std::move(choice));
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
  if (path.extension() == ".block") {
    static_cast<void>(load_block_text(path.string())->block());
    return FileKind::block;
  }
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
                    .allowed = "a scenario, a model (TOML or config.json), a block, a GPU, or a "
                               "folder or CSV file of measurements"});
}

}  // namespace fuseline::gui
