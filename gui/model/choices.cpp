#include "gui/model/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "base/toml_file.h"
#include "gui/model/run_plan.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/config/model_files.h"
#include "sim/gpu/code_rate.h"
#include "sim/gpu/standing.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kMostDifferences = 3;

// Told by its name and its beginning: reading all of a trace takes too long to find out what it is.
bool looks_like_trace(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string ending = path.extension().string();
  if (ending == ".gz" || ending == ".sqlite") return true;
  if (ending != ".json" && ending != ".csv") return false;
  std::string begin(16384, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  const auto has = [&begin](const char* word) { return begin.find(word) != std::string::npos; };
  if (ending == ".json") return has("traceEvents") || has("\"ph\"") || has("deviceProperties");
  return has("Kernel Name") || has("Start (ns)");
}

}  // namespace

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

namespace {

// "T = 4,096, here 2,048": what of a measured block is not the setup's.
std::vector<std::string> differences(const Workload& measured, const Workload& here) {
  std::vector<std::string> found;
  const auto size = [&](const char* name, std::int64_t a, std::int64_t b) {
    if (a != b) found.push_back(fmt::format("{} = {}, here {}", name, grouped(a), grouped(b)));
  };
  const auto word = [&](const char* name, const std::string& a, const std::string& b) {
    if (a != b) found.push_back(fmt::format("{} {}, here {}", name, a, b));
  };
  word("phase", name_of(measured.phase), name_of(here.phase));
  size("B", measured.batch, here.batch);
  size("T", measured.seq, here.seq);
  if (measured.phase == Phase::decode && here.phase == Phase::decode)
    size("S", measured.context, here.context);
  word("storage", name_of(measured.dtype), name_of(here.dtype));
  word("weights", weights_text(measured), weights_text(here));
  word("activations", activations_text(measured), activations_text(here));
  word("cache", cache_text(measured), cache_text(here));
  if (found.empty()) found.emplace_back("other loads of experts");
  return found;
}

}  // namespace

std::string why_no_run_fits(const Measurements& measurements, const Setup& setup) {
  const PredictionCase c = resolve(setup);
  if (measurements.meta.gpu.empty())
    return fmt::format(
        "does not say on which GPU it was measured: write gpu = \"{}\", or another name of "
        "'fuseline list gpus', into meta.toml beside it",
        c.gpu.name);
  if (measurements.meta.gpu != c.gpu.name)
    return fmt::format("was measured on {}, and the session's GPU is {}: choose {} in Setup",
                       measurements.meta.gpu, c.gpu.name, measurements.meta.gpu);
  std::vector<BlockCase> cases;
  for (const MeasuredBlock& b : measurements.blocks) cases.push_back(b.block);
  for (const MeasuredTrace& t : measurements.traces) cases.push_back(t.block);
  if (cases.empty())
    return "holds no block: single GEMMs are judged under Validation, and are no run";
  std::set<std::string> models;
  for (const BlockCase& b : cases) models.insert(b.model);
  if (!models.contains(c.model.name))
    return fmt::format("holds {}, and the session's model is {}", fmt::join(models, ", "),
                       c.model.name);
  // The nearest first: fewest differences.
  std::map<std::size_t, std::set<std::string>> by_count;
  for (const BlockCase& b : cases) {
    if (b.model != c.model.name) continue;
    const std::vector<std::string> found = differences(b.workload, c.workload);
    by_count[found.size()].insert(fmt::format("{}", fmt::join(found, "; ")));
  }
  const std::set<std::string>& nearest = by_count.begin()->second;
  std::vector<std::string> some(nearest.begin(), nearest.end());
  const std::size_t more = some.size() - std::min(some.size(), kMostDifferences);
  some.resize(some.size() - more);
  return fmt::format("holds {} with other sizes than the session's, nearest: {}{}", c.model.name,
                     fmt::join(some, " | "),
                     more > 0 ? fmt::format(" | and {} more", more) : std::string());
}

FileKind kind_of_file(const std::filesystem::path& path) {
  std::error_code error;
  if (path.extension() == ".block") {
    static_cast<void>(load_block_text(path.string())->block());
    return FileKind::block;
  }
  if (looks_like_trace(path)) return FileKind::trace;
  if (path.extension() == ".fuse") {
    static_cast<void>(run_of_plan(path.string()));
    return FileKind::plan;
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
                    .allowed =
                        "a scenario, a model (TOML or config.json), a block, a plan, a GPU, a "
                        "folder or CSV file of measurements, or a profiler's trace"});
}

}  // namespace fuseline::gui
