#include "model/scenario.h"

#include <algorithm>
#include <set>

#include "model/data_files.h"
#include "model/policy.h"
#include "model/toml_file.h"

namespace fuseline {
namespace {

constexpr IntegerRange kTokens{1, kLargestDimension};

// A name stays a name; a path is taken from the scenario's folder.
std::string name_or_relative(const std::string& text, const std::filesystem::path& file) {
  return looks_like_path(text) ? relative_to_file(text, file).string() : text;
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
  try {
    ModelConfig one_head;  // the model may be changed later, so only the workload itself is judged
    one_head.H = 1;
    check_workload(w, one_head);
  } catch (const InputError& error) {
    table.fail_at(error.problem());
  }
  return w;
}

std::vector<std::string> read_policies(const TomlTable& table) {
  std::vector<std::string> known;
  for (const PolicyInfo& policy : policies()) known.push_back(policy.name);
  if (!table.has("policies")) return known;
  std::vector<std::string> chosen = table.texts("policies");
  std::string allowed;
  for (const std::string& name : known) allowed += (allowed.empty() ? "" : ", ") + name;
  if (chosen.empty()) table.fail("policies", "names no policy", allowed);
  std::set<std::string> seen;
  for (const std::string& name : chosen) {
    InputProblem problem{.field = "policies", .value = name};
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problem.message = "unknown policy";
      problem.allowed = allowed;
      problem.nearest = nearest_name(name, known);
      table.fail_at(problem);
    }
    if (!seen.insert(name).second) {
      problem.message = "is named twice";
      table.fail_at(problem);
    }
  }
  return chosen;
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
  table.refuse_other_keys({"title", "model", "gpu", "phase", "batch", "seq", "context", "dtype",
                           "policies", "fidelity", "layers", "measurements"});
  Scenario s;
  s.title = table.text("title");
  s.model = name_or_relative(table.text("model"), path);
  s.gpu = name_or_relative(table.text("gpu"), path);
  s.workload = read_workload(table);
  s.policies = read_policies(table);
  s.fidelity = table.has("fidelity") ? table.word("fidelity", fidelity_words()) : "hierarchy";
  s.layers = read_layers(table);
  if (table.has("measurements")) {
    s.measurements = relative_to_file(table.text("measurements"), path);
  }
  return s;
}

}  // namespace fuseline
