#include "model/config/scenario.h"

#include <algorithm>
#include <set>

#include "base/data_files.h"
#include "base/toml_file.h"
#include "model/activation_formats/stored_activation.h"
#include "model/config/several_gpus.h"
#include "model/policy.h"

namespace fuseline {
namespace {

constexpr IntegerRange kTokens{1, kLargestDimension};

// A name stays a name; a path is taken from the scenario's folder.
std::string name_or_relative(const std::string& text, const std::filesystem::path& file) {
  return looks_like_path(text) ? relative_to_file(text, file).string() : text;
}

// Before unknown fields are refused, which would suggest another name for these.
void refuse_several_gpus(const TomlTable& table) {
  for (const std::string& key : table.keys()) {
    if (asks_for_several_gpus(key)) table.fail(key, kSeveralGpusMessage, "gpu = one GPU's name");
  }
}

// A block stands for a model too, where its sizes have defaults.
template <class Setup>
void read_model_and_block(const TomlTable& table, const std::filesystem::path& path, Setup& s) {
  if (table.has("block")) s.change.block = name_or_relative(table.text("block"), path);
  if (s.change.block.empty() || table.has("model"))
    s.model = name_or_relative(table.text("model"), path);
  s.change.text = table.text_or("block_text", "");
}

RoutingLoads read_routing(const TomlTable& table) {
  const std::string text = table.text("routing");
  try {
    return parse_routing(
        is_routing_word(text) ? text : relative_to_file(text, table.file()).string(), "routing");
  } catch (const InputError& error) {
    if (!error.problem().file.empty()) throw;
    table.fail_at(error.problem());
  }
}

Workload read_workload(const TomlTable& table) {
  Workload w;
  if (table.has("phase")) {
    w.phase = parse_phase(table.word("phase", {name_of(Phase::forward), name_of(Phase::train),
                                               name_of(Phase::decode)}),
                          "phase");
  }
  w.batch = table.whole_or("batch", kTokens, 1);
  w.seq = table.whole_or("seq", kTokens, w.phase == Phase::decode ? 1 : 2048);
  w.context = table.whole_or("context", kTokens, 0);
  if (table.has("dtype")) {
    w.dtype = parse_dtype(
        table.word("dtype", {name_of(Dtype::bf16), name_of(Dtype::fp16), name_of(Dtype::fp32)}),
        "dtype");
  }
  const auto read_format = [&](const char* field, auto& format, auto parse) {
    if (!table.has(field)) return;
    try {
      format = parse(table.text(field), field, name_of(w.dtype));
    } catch (const InputError& error) {
      table.fail_at(error.problem());
    }
  };
  read_format("weights", w.formats.weights, parse_stored_weight);
  read_format("activations", w.formats.activations, parse_stored_activation);
  read_format("kv", w.formats.cache, parse_stored_cache);
  if (table.has("routing")) w.routing = read_routing(table);
  try {
    ModelConfig one_head;  // the model may be changed later, so only the workload itself is judged
    one_head.H = 1;
    check_workload(w, one_head);
  } catch (const InputError& error) {
    table.fail_at(error.problem());
  }
  return w;
}

std::vector<std::string> known_policies() {
  std::vector<std::string> known;
  for (const PolicyInfo& policy : policies()) known.push_back(policy.name);
  return known;
}

std::vector<std::string> read_policies(const TomlTable& table) {
  std::vector<std::string> known = known_policies();
  if (!table.has("policies")) {
    if (table.has("custom")) known.emplace_back(kCustomPolicy);
    return known;
  }
  known.emplace_back(kCustomPolicy);
  std::vector<std::string> chosen = table.texts("policies");
  std::string allowed;
  for (const std::string& name : known) allowed += (allowed.empty() ? "" : ", ") + name;
  if (chosen.empty()) table.fail("policies", "names no policy", allowed);
  std::set<std::string> seen;
  for (std::string& name : chosen) {
    try {
      name = without_version("policies", name);
    } catch (const InputError& error) {
      table.fail_at(error.problem());
    }
    InputProblem problem{.field = "policies", .value = name};
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problem.message = "unknown policy";
      problem.allowed = allowed;
      problem.nearest = nearest_name(name, known);
      table.fail_at(problem);
    }
    if (name == kCustomPolicy && !table.has("custom")) {
      problem.message = "the file does not say what it fuses";
      problem.allowed = "a [custom] table with rewrites and on_chip beside it";
      table.fail_at(problem);
    }
    if (!seen.insert(name).second) {
      problem.message = "is named twice";
      table.fail_at(problem);
    }
  }
  return chosen;
}

std::string read_fidelity(const TomlTable& table) {
  return table.has("fidelity") ? table.word("fidelity", fidelity_words()) : "hierarchy";
}

// Names are checked here; whether the choices are legal, when the block is there.
CustomFusion read_custom(const TomlTable& table) {
  CustomFusion custom;
  if (table.has("rewrites")) custom.rewrites = table.texts("rewrites");
  const std::vector<std::string> known = rewrite_names();
  for (const std::string& name : custom.rewrites) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    table.fail_at({.field = "rewrites",
                   .value = name,
                   .message = "unknown rewrite",
                   .nearest = nearest_name(name, known)});
  }
  if (!table.has("on_chip")) return custom;
  for (const std::string& text : table.texts("on_chip")) {
    try {
      custom.on_chip.push_back(parse_edge(text, "on_chip"));
    } catch (const InputError& error) {
      table.fail_at(error.problem());
    }
  }
  return custom;
}

WhatIf read_what_if(const TomlTable& table) {
  WhatIf what_if;
  std::vector<std::string> keys;
  for (const WhatIfField& field : kWhatIfFields) keys.emplace_back(field.key);
  table.refuse_other_keys(keys);
  for (const WhatIfField& field : kWhatIfFields) {
    what_if.*field.factor = table.real_or(field.key, {kLeastFactor, kMostFactor}, 1);
  }
  return what_if;
}

ScenarioSetup read_setup(const TomlTable& table, const std::filesystem::path& path) {
  refuse_several_gpus(table);
  table.refuse_other_keys({"model", "block", "block_text", "gpu", "phase", "batch", "seq",
                           "context", "dtype", "weights", "activations", "kv", "routing",
                           "fidelity", "what_if"});
  ScenarioSetup s;
  read_model_and_block(table, path, s);
  s.gpu = name_or_relative(table.text("gpu"), path);
  s.workload = read_workload(table);
  s.fidelity = read_fidelity(table);
  if (table.has("what_if")) s.what_if = read_what_if(table.table("what_if"));
  return s;
}

ScenarioRun read_run(const TomlTable& table, const std::filesystem::path& path) {
  table.refuse_other_keys({"name", "policy", "measurements", "plan", "plan_text", "plan_draft",
                           "rewrites", "on_chip", "setup"});
  ScenarioRun run;
  run.name = table.text("name");
  if (table.has("measurements")) {
    run.policy = table.text("policy");
    run.measurements = relative_to_file(table.text("measurements"), path);
    for (const char* key : {"plan", "plan_text", "plan_draft"})
      if (table.has(key)) table.fail(key, "only a prediction has it");
  } else if (table.has("plan") || table.has("plan_text")) {
    run.policy = table.text("policy");
    if (table.has("plan")) run.plan = relative_to_file(table.text("plan"), path);
    run.plan_text = table.text_or("plan_text", "");
    run.plan_draft = table.text_or("plan_draft", "");
  } else {
    std::vector<std::string> words = known_policies();
    words.emplace_back(kCustomPolicy);
    run.policy = table.word("policy", words);
    if (!table.text_or("plan_draft", "").empty())
      table.fail("plan_draft", "is of a plan: plan or plan_text has to stand beside it");
  }
  const bool has_plan = !run.plan.empty() || !run.plan_text.empty();
  if (run.policy == kCustomPolicy && run.measurements.empty() && !has_plan) {
    run.custom = read_custom(table);
  } else {
    for (const char* key : {"rewrites", "on_chip"}) {
      if (table.has(key)) table.fail(key, "only a prediction under custom has it");
    }
  }
  if (table.has("setup")) run.setup = read_setup(table.table("setup"), path);
  return run;
}

std::vector<ScenarioRun> read_runs(const TomlTable& top, const std::filesystem::path& path) {
  std::vector<ScenarioRun> runs;
  for (const TomlTable& table : top.tables("runs")) {
    runs.push_back(read_run(table, path));
    const auto same = [&](const ScenarioRun& r) { return r.name == runs.back().name; };
    if (std::count_if(runs.begin(), runs.end(), same) > 1) {
      table.fail("name", "an earlier run has the same name", "a name of its own for each run");
    }
  }
  if (runs.empty()) top.fail("runs", "holds no run", "at least one run, or no such field");
  return runs;
}

// The name of one of the runs.
std::string read_baseline(const TomlTable& gui, const std::vector<ScenarioRun>& runs) {
  gui.refuse_other_keys({"baseline", "block_draft"});
  if (!gui.has("baseline")) return {};
  std::vector<std::string> names;
  for (const ScenarioRun& run : runs) names.push_back(run.name);
  return gui.word("baseline", names);
}

std::optional<std::int64_t> read_layers(const TomlTable& table) {
  if (!table.has("layers")) return 1;
  if (table.is_text("layers")) {
    if (table.text("layers") == "all") return std::nullopt;
    table.fail("layers", "is not a number of layers",
               "a whole number from 1 to " + std::to_string(kMostLayers) + ", or \"all\"", "all");
  }
  return table.whole("layers", {1, kMostLayers});
}

}  // namespace

std::vector<std::string> fidelity_words() { return {"roofline", "hierarchy"}; }

std::vector<std::string> scenario_names() { return data_file_names(""); }

Scenario load_scenario(const std::string& name_or_path) {
  const std::filesystem::path path =
      find_data_file(name_or_path, {.field = "scenario", .folder = ""});
  const TomlTable table = TomlTable::load(path);
  refuse_several_gpus(table);
  table.refuse_other_keys({"title",    "model",       "block",        "block_text", "gpu",
                           "phase",    "batch",       "seq",          "context",    "dtype",
                           "weights",  "activations", "kv",           "routing",    "policies",
                           "fidelity", "layers",      "measurements", "what_if",    "custom",
                           "gui",      "runs"});
  Scenario s;
  s.title = table.text("title");
  read_model_and_block(table, path, s);
  s.gpu = name_or_relative(table.text("gpu"), path);
  s.workload = read_workload(table);
  s.policies = read_policies(table);
  s.fidelity = read_fidelity(table);
  s.layers = read_layers(table);
  if (table.has("measurements")) {
    s.measurements = relative_to_file(table.text("measurements"), path);
  }
  if (table.has("what_if")) s.what_if = read_what_if(table.table("what_if"));
  if (table.has("custom")) {
    const TomlTable custom = table.table("custom");
    custom.refuse_other_keys({"rewrites", "on_chip"});
    s.custom = read_custom(custom);
  }
  if (table.has("runs")) s.runs = read_runs(table, path);
  if (table.has("gui")) {
    s.baseline = read_baseline(table.table("gui"), s.runs);
    s.draft = table.table("gui").text_or("block_draft", "");
  }
  return s;
}

}  // namespace fuseline
