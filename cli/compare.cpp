// fuseline compare: predictions beside measurements.
#include <optional>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/compare_gains.h"
#include "cli/compare_table.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/predict_table.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "sim/report/error_table_json.h"
#include "sim/selection/compare_request.h"

namespace fuseline {

namespace {

constexpr std::size_t kWorstCases = 5;
constexpr std::size_t kMostCompared = 64;

struct CompareOptions {
  std::vector<std::string> files;  // [PREDICTION.json] MEASUREMENT; with --gain-over any folders
  SelectionTexts only;
  std::optional<std::string> format, output, gain_over;
  bool blocks = false, kernels = false, check = false;
};

// A GPU file of another name may describe the GPU that was measured, so this is said, not refused.
std::string another_gpu(const Gpu& gpu, const Measurements& measurements) {
  const std::string& measured = measurements.meta.gpu;
  if (measured.empty() || load_gpu(measured).name == gpu.name) return {};
  return wrap(fmt::format("ANOTHER GPU: predicted is {}, measured was {}", gpu.name, measured));
}

std::string heading(const Measurements& m) {
  std::string details;
  for (const std::string& part :
       {m.meta.device, m.meta.driver.empty() ? "" : "driver " + m.meta.driver, m.meta.toolkit,
        m.meta.framework, m.meta.date, m.meta.clocks}) {
    if (!part.empty()) details += (details.empty() ? "" : "; ") + part;
  }
  return wrap("measured: " + (m.meta.title.empty() ? m.path : m.meta.title)) +
         (details.empty() ? "" : wrap("  " + details));
}

std::string report(const CompareOptions& o, const MeasuredComparison& compared) {
  const ErrorTable& table = compared.table;
  const std::size_t judged = judged_predictor(table);
  std::string out = error_table_text(table);
  if (table.predictors.back() == "left out") {
    out +=
        "left out: constants fitted without the model that is judged (no GEMMs of other shapes)\n";
  }
  for (const std::string& why : table.not_judged) out += "not judged: " + why + "\n";
  out += worst_cases_text(table, judged, kWorstCases) + coverage_text(compared.coverage);
  if (o.blocks) {
    out += all_cases_text(table, {Quantity::block_time, Quantity::block_hbm});
    out += rivals_text(compared.measurements);
  }
  if (!o.kernels) return out;
  for (const MeasuredTrace& trace : compared.measurements.traces) {
    const bool trains = o.only.phase && *o.only.phase == "train";
    if ((trace.block.workload.phase == Phase::train) != trains) continue;
    try {
      out += kernels_beside_text(trace, compared.predictors[judged].block(trace.block));
    } catch (const Unpredicted&) {
      continue;
    }
  }
  return out;
}

// Options that choose among errors of times say nothing of gains.
void refuse_beside_gains(const CompareOptions& o) {
  const SelectionTexts& only = o.only;
  bool others = o.blocks || o.kernels || o.check;
  for (const std::optional<std::string>* word :
       {&only.model, &only.block, &only.gpu, &only.phase, &only.batch, &only.seq, &only.context,
        &only.dtype, &only.weights, &only.activations, &only.kv, &only.routing})
    others = others || word->has_value();
  if (!others) return;
  throw InputError({.file = kCommandLine,
                    .field = "--gain-over",
                    .message = "compares all blocks of the measurements",
                    .allowed = "--policy, --format, --output"});
}

void refuse_third_file(const std::vector<std::string>& files) {
  if (files.size() <= 2) return;
  throw InputError({.file = kCommandLine,
                    .field = "FILES",
                    .value = files[2],
                    .message = "is one too many",
                    .allowed = "[PREDICTION.json] MEASUREMENT; folders with --gain-over"});
}

CommandResult written(const std::string& text, const std::optional<std::string>& output) {
  if (!output) return {text, {}, ExitStatus::done};
  write_file_atomically(*output, text);
  return {{}, fmt::format("fuseline: written {}\n", *output), ExitStatus::done};
}

// All targets, by every predictor but the roofline, which is there for comparison.
bool targets_met(const ErrorTable& table) {
  for (const ErrorRow& row : table.rows) {
    for (std::size_t p = 0; p < table.predictors.size(); ++p) {
      if (table.predictors[p] != "roofline" && !row.meets_target(p)) return false;
    }
  }
  return true;
}

}  // namespace

CommandResult compare_command(const Arguments& args) {
  CompareOptions o;
  Options options("compare", "Predictions beside measurements: errors, signed bias, worst cases.",
                  {"fuseline compare scenarios/measurements/h200-pytorch",
                   "fuseline compare scenarios/measurements/h200-pytorch --model gpt2-xl --blocks",
                   "fuseline compare prediction.json scenarios/measurements/h200-pytorch/block.csv",
                   "fuseline compare --policy coda --gain-over per-operator"});
  options.positional("FILES", "[PREDICTION.json] folder or CSV file; --gain-over: folders or none",
                     o.files, kMostCompared);
  o.only.add_to(options);
  options.flag("--blocks", "every block, measured beside predicted", o.blocks);
  options.flag("--kernels", "every kernel of the blocks with a kernel trace", o.kernels);
  options.text("--gain-over", "POLICY", "gains of --policy over this one, measured and predicted",
               o.gain_over);
  options.flag("--check", "exit status 1 when an accuracy target is missed", o.check);
  options.text("--format", "table|json|csv", "what to print (table)", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  if (o.gain_over) {
    refuse_beside_gains(o);
    return written(compared_gains({o.files, *o.gain_over, o.only.policy, o.format}), o.output);
  }
  refuse_third_file(o.files);
  const std::string format =
      parse_word("--format", o.format.value_or("table"), {"table", "json", "csv"});
  ProgressBar bar;
  const MeasuredComparison compared =
      compare_measured(o.files, o.only, [&bar](std::size_t done, std::size_t count) {
        bar.show(fmt::format("{} of {} cases", done, count),
                 static_cast<double>(done) / static_cast<double>(count));
      });
  bar.clear();
  const Measurements& measurements = compared.measurements;
  const ErrorTable& table = compared.table;
  const std::optional<Gpu>& gpu = compared.gpu;

  std::string text;
  if (format == "json") {
    text = error_table_json(measurements, table, compared.coverage);
  } else if (format == "csv") {
    text = cases_csv(table);
  } else {
    text = heading(measurements) + (gpu ? describe(*gpu, "GPU: ") : "") +
           (gpu ? another_gpu(*gpu, measurements) : "") + "\n" + report(o, compared);
  }
  CommandResult result = written(text, o.output);
  if (o.check && !targets_met(table)) {
    result.messages += "fuseline: an accuracy target is missed\n";
    result.status = ExitStatus::check_failed;
  }
  return result;
}

}  // namespace fuseline
