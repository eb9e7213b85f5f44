#include <fmt/format.h>

#include "base/data_files.h"
#include "base/toml_text.h"
#include "model/config/scenario.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

// Relative where the file is below the folder, so that both can move together.
std::string path_text(const fs::path& path, const fs::path& folder) {
  const fs::path full = fs::absolute(path).lexically_normal();
  const fs::path relative = full.lexically_relative(fs::absolute(folder).lexically_normal() / "");
  const bool below = !relative.empty() && *relative.begin() != "..";
  return (below ? relative : full).generic_string();
}

// A relative path needs something that tells it from a name.
std::string name_or_path(const std::string& text, const fs::path& folder) {
  return looks_like_path(text) ? path_text(text, folder) : text;
}

std::string workload_text(const Workload& w, const fs::path& folder) {
  std::string out =
      fmt::format("phase = \"{}\"\nbatch = {}\nseq = {}\n", name_of(w.phase), w.batch, w.seq);
  if (w.phase == Phase::decode) out += fmt::format("context = {}\n", w.context);
  out += fmt::format("dtype = \"{}\"\n", name_of(w.dtype));
  if (w.formats.weights.quantised())
    out += fmt::format("weights = \"{}\"\n", w.formats.weights.name());
  if (w.formats.activations.quantised())
    out += fmt::format("activations = \"{}\"\n", w.formats.activations.name());
  if (w.routing.given())
    out += fmt::format("routing = {}\n", toml_text(is_routing_word(w.routing.name)
                                                       ? w.routing.name
                                                       : path_text(w.routing.name, folder)));
  if (w.formats.cache.quantised()) out += fmt::format("kv = \"{}\"\n", w.formats.cache.name());
  return out;
}

std::string setup_text(const ScenarioSetup& s, const fs::path& folder) {
  std::string out;
  const auto add = [&out](const char* key, const std::string& text) {
    if (!text.empty()) out += fmt::format("{} = {}\n", key, text);
  };
  const auto named = [&](const std::string& text) {
    return text.empty() ? text : toml_text(name_or_path(text, folder));
  };
  add("model", named(s.model));
  add("block", named(s.change.block));
  add("block_text", s.change.text.empty() ? "" : toml_lines(s.change.text));
  add("gpu", named(s.gpu));
  return out + workload_text(s.workload, folder) + fmt::format("fidelity = \"{}\"\n", s.fidelity);
}

std::string what_if_text(const std::string& table, const WhatIf& what_if) {
  if (what_if.is_neutral()) return {};
  std::string out = "\n[" + table + "]  # factors on the GPU's numbers\n";
  for (const WhatIfField& field : kWhatIfFields) {
    if (what_if.*field.factor != 1)
      out += fmt::format("{} = {}\n", field.key, what_if.*field.factor);
  }
  return out;
}

std::string custom_text(const CustomFusion& custom) {
  std::vector<std::string> edges;
  for (const OnChipEdge& edge : custom.on_chip) edges.push_back(edge_text(edge));
  return fmt::format("rewrites = {}\non_chip = {}\n", toml_list(custom.rewrites), toml_list(edges));
}

std::string run_text(const ScenarioRun& run, const fs::path& folder) {
  std::string out = fmt::format("\n[[runs]]\nname = {}\npolicy = {}\n", toml_text(run.name),
                                toml_text(run.policy));
  if (!run.measurements.empty()) {
    out += fmt::format("measurements = {}\n", toml_text(path_text(run.measurements, folder)));
  } else if (!run.plan.empty() || !run.plan_text.empty()) {
    if (!run.plan.empty())
      out += fmt::format("plan = {}\n", toml_text(path_text(run.plan, folder)));
    if (!run.plan_text.empty()) out += fmt::format("plan_text = {}\n", toml_lines(run.plan_text));
    if (!run.plan_draft.empty())
      out += fmt::format("plan_draft = {}\n", toml_lines(run.plan_draft));
  } else if (run.policy == kCustomPolicy) {
    out += custom_text(run.custom);
  }
  if (!run.setup) return out;
  out += "\n[runs.setup]\n" + setup_text(*run.setup, folder);
  return out + what_if_text("runs.setup.what_if", run.setup->what_if);
}

}  // namespace

std::string scenario_text(const Scenario& s, const fs::path& folder) {
  std::string out = fmt::format("title = {}\n", toml_text(s.title));
  out += setup_text({s.model, s.gpu, s.what_if, s.workload, s.fidelity, s.change}, folder);
  out += fmt::format("policies = {}\n", toml_list(s.policies));
  out += s.layers ? fmt::format("layers = {}\n", *s.layers) : "layers = \"all\"\n";
  if (!s.measurements.empty()) {
    out += fmt::format("measurements = {}\n", toml_text(path_text(s.measurements, folder)));
  }
  out += what_if_text("what_if", s.what_if);
  if (s.custom) out += "\n[custom]  # what policy custom does\n" + custom_text(*s.custom);
  if (!s.baseline.empty() || !s.draft.empty()) out += "\n[gui]\n";
  if (!s.baseline.empty()) out += fmt::format("baseline = {}\n", toml_text(s.baseline));
  if (!s.draft.empty()) out += fmt::format("block_draft = {}\n", toml_lines(s.draft));
  for (const ScenarioRun& run : s.runs) out += run_text(run, folder);
  return out;
}

}  // namespace fuseline
