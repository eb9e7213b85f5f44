// fuseline predict: time and traffic of a block under each policy.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/predict_sequences.h"
#include "cli/predict_table.h"
#include "cli/selection.h"
#include "sim/measured/measurement.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/json_output.h"
#include "sim/report/predict_csv.h"
#include "sim/report/prediction_charts.h"

namespace fuseline {

namespace {

struct PredictOptions {
  SelectionTexts selection;
  SequenceWords sequences;
  std::optional<std::string> format, output, price, trace, plot, draw;
  std::vector<std::string> scenario;
  bool kernels = false;
};

Svg drawing_of(const std::string& what, const Selection& selection,
               const std::vector<Prediction>& predictions) {
  if (what == "traffic") return draw_traffic(selection, predictions);
  if (what == "kernels") return draw_timelines(predictions);
  return draw_times(selection, predictions);
}

}  // namespace

CommandResult predict_command(const Arguments& args) {
  PredictOptions o;
  Options options(
      "predict", "Time and traffic of one Transformer block under each fusion policy.",
      {"fuseline predict", "fuseline predict scenarios/llama2-7b-h200.toml",
       "fuseline predict --model llama2-7b --gpu h200 --policy eager,coda --kernels",
       "fuseline predict --phase decode --batch 16 --layers all --price-per-hour 2.50",
       "fuseline predict --model path/to/config.json --gpu rtx4090 --format json",
       "fuseline predict --model sd3-medium --gpu h200 --image 512 --steps 28",
       "fuseline predict --model llama3-8b --sequences 31x1@4096+1x512@2560 --page 16"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", o.scenario, 1);
  o.selection.add_to(options);
  o.selection.add_plan_to(options);
  o.selection.add_simulation_to(options);
  o.selection.add_image_to(options);
  options.text("--price-per-hour", "X", "of the GPU; with --layers all: cost per million tokens",
               o.price);
  options.text("--sequences", "TEXT|FILE.csv",
               "one call for unlike sequences: SEQUENCESxNEW@CACHE+... of decode",
               o.sequences.sequences);
  options.text("--page", "N", "with --sequences: caches in pages of so many tokens",
               o.sequences.page);
  options.flag("--kernels", "a table of kernels for each policy (table, csv)", o.kernels);
  options.text("--format", "table|json|csv", "what to print (table)", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  options.text("--plot", "FILE.svg", "also a drawing", o.plot);
  options.text("--draw", "time|traffic|kernels", "with --plot: what is drawn (time)", o.draw);
  options.text("--trace", "FILE", "also a trace of predicted and measured runs, for Perfetto",
               o.trace);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", o.format.value_or("table"), {"table", "json", "csv"});
  const std::string draw =
      parse_word("--draw", o.draw.value_or("time"), {"time", "traffic", "kernels"});
  if (o.draw && !o.plot)
    throw InputError({.file = kCommandLine,
                      .field = "--draw",
                      .value = *o.draw,
                      .message = "says what a drawing shows, and none is asked for",
                      .allowed = "with --plot FILE.svg"});
  if (o.trace) check_writable(*o.trace, "--trace");
  if (o.plot) check_writable(*o.plot, "--plot");
  leave_sizes_to_sequences(o.sequences, o.selection);
  Selection selection = resolve_selection(
      o.scenario.empty() ? std::nullopt : std::optional(o.scenario.front()), o.selection);
  if (o.sequences.sequences) {
    if (format == "csv" || o.kernels || o.plot || o.trace || o.price || selection.image)
      throw InputError({.file = kCommandLine,
                        .field = "--sequences",
                        .value = *o.sequences.sequences,
                        .message = "is printed as a table or as JSON, and not drawn",
                        .allowed = "with --policy, --page, --format table or json, --output"});
    std::string text = predict_sequences(o.sequences, selection, format);
    if (!o.output) return {std::move(text), {}, ExitStatus::done};
    write_file_atomically(*o.output, text);
    return {{}, fmt::format("fuseline: written {}\n", *o.output), ExitStatus::done};
  }
  if (o.price) selection.price = parse_price(*o.price, selection.layers);
  std::optional<Measurements> measurements;
  if (selection.measurements) measurements = load_measurements(*selection.measurements);

  std::vector<Prediction> predictions;
  ProgressBar bar;
  for (const std::string& policy : selection.policies) {
    bar.show(policy, static_cast<double>(predictions.size()) /
                         static_cast<double>(selection.policies.size()));
    predictions.push_back(
        predict(plan_of(selection, policy), selection, measurements ? &*measurements : nullptr));
  }

  bar.clear();

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
  std::string messages;
  if (o.plot) {
    write_file_atomically(*o.plot, drawing_of(draw, selection, predictions).file(), "--plot");
    messages += fmt::format("fuseline: written {}\n", *o.plot);
  }
  if (o.trace) {
    write_file_atomically(*o.trace, chrome_trace(selection, predictions), "--trace");
    messages += fmt::format("fuseline: written {}\n", *o.trace);
  }
  if (!o.output) return {std::move(text), std::move(messages), ExitStatus::done};
  write_file_atomically(*o.output, text);
  return {{}, messages + fmt::format("fuseline: written {}\n", *o.output), ExitStatus::done};
}

}  // namespace fuseline
