// fuseline predict: time and traffic of a block under each policy.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/predict_csv.h"
#include "cli/predict_table.h"
#include "cli/selection.h"
#include "model/policy.h"

namespace fuseline {

namespace {

struct PredictOptions {
  SelectionTexts selection;
  std::optional<std::string> format, output;
  std::vector<std::string> scenario;
  bool kernels = false;
};

Prediction predict_policy(const Selection& s, const std::string& policy,
                          const std::optional<Measurements>& measurements) {
  Prediction out;
  const Plan plan = make_plan(policy, s.model, s.workload);
  out.block = simulate(plan, s.gpu, s.fidelity);
  if (!s.layers) {
    out.layers = whole_model(out.block, s.model, s.workload, s.gpu);
  } else if (*s.layers > 1) {
    out.layers = repeat_block(out.block, *s.layers);
  }
  if (measurements && measurements->meta.gpu == s.gpu.name) {
    const BlockCase block = {s.model.name, policy, s.workload};
    out.measured = find_block(*measurements, block);
    out.trace = find_trace(*measurements, block);
    if (out.measured || out.trace) {
      out.replayed = simulate(plan, s.gpu, s.fidelity, {.replay = true, .runs = 2});
    }
  }
  return out;
}

}  // namespace

CommandResult predict_command(const Arguments& args) {
  PredictOptions o;
  Options options("predict", "Time and traffic of one Transformer block under each fusion policy.",
                  {"fuseline predict", "fuseline predict scenarios/llama2-7b-h200.toml",
                   "fuseline predict --model llama2-7b --gpu h200 --policy eager,coda --kernels",
                   "fuseline predict --phase decode --batch 16 --context 4096 --layers all",
                   "fuseline predict --model path/to/config.json --gpu rtx4090 --format json"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", o.scenario, 1);
  o.selection.add_to(options);
  o.selection.add_simulation_to(options);
  options.flag("--kernels", "a table of kernels for each policy (table, csv)", o.kernels);
  options.text("--format", "table|json|csv", "what to print (table)", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", o.format.value_or("table"), {"table", "json", "csv"});
  const Selection selection = resolve_selection(
      o.scenario.empty() ? std::nullopt : std::optional(o.scenario.front()), o.selection);
  std::optional<Measurements> measurements;
  if (selection.measurements) measurements = load_measurements(*selection.measurements);

  std::vector<Prediction> predictions;
  for (const std::string& policy : selection.policies) {
    predictions.push_back(predict_policy(selection, policy, measurements));
  }

  std::string text;
  if (format == "json") {
    text = predictions_json(selection, predictions);
  } else if (format == "csv") {
    text =
        o.kernels ? kernels_csv(selection, predictions) : predictions_csv(selection, predictions);
  } else {
    text = predictions_table(selection, predictions, measurements ? &measurements->meta : nullptr,
                             o.kernels);
  }
  if (!o.output) return {std::move(text), {}, ExitStatus::done};
  write_file_atomically(*o.output, text);
  return {{}, fmt::format("fuseline: written {}\n", *o.output), ExitStatus::done};
}

}  // namespace fuseline
