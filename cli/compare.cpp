// fuseline compare: predictions beside measurements.
#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/compare_table.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/predict_table.h"
#include "cli/saved_match.h"
#include "cli/saved_prediction.h"
#include "cli/selection.h"
#include "cli/table.h"
#include "model/policy.h"
#include "sim/gpu/standing.h"
#include "sim/judge/band_fit.h"
#include "sim/judge/standard_predictors.h"
#include "sim/judge/validation.h"
#include "sim/report/json_output.h"

namespace fuseline {

namespace {

constexpr std::size_t kWorstCases = 5;

struct CompareOptions {
  std::vector<std::string> files;  // [PREDICTION.json] MEASUREMENT
  SelectionTexts only;
  std::optional<std::string> format, output;
  bool blocks = false, kernels = false, check = false;
};

// Whether the command line leaves this case in: each option that is given must agree.
class Filter {
 public:
  explicit Filter(const SelectionTexts& only) : only_(only) {
    if (only.phase) parse_word("--phase", *only.phase, {"forward", "decode", "train"});
    if (only.policy) policies_ = parse_policies(*only.policy);
    batch_ = size("--batch", only.batch);
    seq_ = size("--seq", only.seq);
    context_ = size("--context", only.context);
    if (only.dtype) {
      dtype_ = parse_dtype(parse_word("--dtype", *only.dtype, {"bf16", "fp16", "fp32"}), "--dtype");
    }
  }

  [[nodiscard]] bool keeps(const BlockCase& c) const {
    return keeps_block(c) && (policies_.empty() || std::find(policies_.begin(), policies_.end(),
                                                             c.execution) != policies_.end());
  }
  // Whatever runs it.
  [[nodiscard]] bool keeps_block(const BlockCase& c) const {
    const Workload& w = c.workload;
    return (!only_.model || c.model == *only_.model) &&
           (!only_.phase || name_of(w.phase) == *only_.phase) && (!batch_ || w.batch == *batch_) &&
           (!seq_ || w.seq == *seq_) && (!context_ || w.context == *context_) &&
           (!dtype_ || w.dtype == *dtype_);
  }
  [[nodiscard]] bool is_open() const {
    return !only_.model && !only_.phase && policies_.empty() && !batch_ && !seq_ && !context_ &&
           !dtype_;
  }

 private:
  static std::optional<std::int64_t> size(const char* option,
                                          const std::optional<std::string>& text) {
    if (!text) return std::nullopt;
    return parse_whole_number(option, *text, 1, kLargestDimension);
  }

  SelectionTexts only_;
  std::vector<std::string> policies_;
  std::optional<std::int64_t> batch_, seq_, context_;
  std::optional<Dtype> dtype_;
};

// GEMMs belong to no block: a selection of blocks leaves them out.
Measurements filtered(Measurements all, const Filter& filter) {
  if (filter.is_open()) return all;
  std::erase_if(all.blocks, [&](const MeasuredBlock& b) { return !filter.keeps(b.block); });
  std::erase_if(all.rivals, [&](const MeasuredBlock& b) { return !filter.keeps_block(b.block); });
  std::erase_if(all.traces, [&](const MeasuredTrace& t) { return !filter.keeps(t.block); });
  all.gemms.clear();
  if (all.blocks.empty() && all.traces.empty()) {
    throw InputError({.file = kCommandLine,
                      .message = "no measured block is left by the options",
                      .allowed = "models, policies and sizes that " + all.path + " holds"});
  }
  return all;
}

Gpu gpu_of(const CompareOptions& o, const Measurements& measurements) {
  if (o.only.gpu || measurements.meta.gpu.empty()) return load_gpu_option(o.only.gpu);
  return load_gpu(measurements.meta.gpu);
}

// A GPU file of another name may describe the GPU that was measured, so this is said, not refused.
std::string another_gpu(const Gpu& gpu, const Measurements& measurements) {
  const std::string& measured = measurements.meta.gpu;
  if (measured.empty() || load_gpu(measured).name == gpu.name) return {};
  return wrap(fmt::format("ANOTHER GPU: predicted is {}, measured was {}", gpu.name, measured));
}

Predictor saved_predictor(SavedPredictions saved) {
  return {.name = "prediction",
          .block =
              [saved = std::move(saved)](const BlockCase& c) {
                for (const SavedPrediction& p : saved.list) {
                  if (same_case(p.block, c)) return p.estimate;
                }
                throw Unpredicted{};
              },
          .gemm = {}};
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

// The most detailed predictor that fits the hardware as shipped: whose worst cases are shown.
std::size_t judged_predictor(std::size_t predictors) {
  return std::min<std::size_t>(1, predictors - 1);
}

std::string report(const CompareOptions& o, const Measurements& measurements,
                   const std::vector<Predictor>& predictors, const ErrorTable& table,
                   const std::vector<Coverage>& coverage) {
  const std::size_t judged = judged_predictor(predictors.size());
  std::string out = error_table_text(table);
  if (table.predictors.back() == "left out") {
    out +=
        "left out: constants fitted without the model that is judged (no GEMMs of other shapes)\n";
  }
  for (const std::string& why : table.not_judged) out += "not judged: " + why + "\n";
  out += worst_cases_text(table, judged, kWorstCases) + coverage_text(coverage);
  if (o.blocks) {
    out += all_cases_text(table, {Quantity::block_time, Quantity::block_hbm});
    out += rivals_text(measurements);
  }
  if (!o.kernels) return out;
  for (const MeasuredTrace& trace : measurements.traces) {
    const bool trains = o.only.phase && *o.only.phase == "train";
    if ((trace.block.workload.phase == Phase::train) != trains) continue;
    try {
      out += kernels_beside_text(trace, predictors[judged].block(trace.block));
    } catch (const Unpredicted&) {
      continue;
    }
  }
  return out;
}

// How well the shipped bands hold what was measured.
std::vector<Coverage> shipped_coverage(const ErrorTable& table, const Gpu& gpu) {
  std::vector<Residual> rows = residuals_of(table, judged_predictor(table.predictors.size()),
                                            std::nullopt, gpu.name, standing_of(gpu), false);
  std::ranges::copy(gains_of(rows), std::back_inserter(rows));
  return coverage_of(rows, [](const Residual& r) { return band_of(shipped_bands(), r); });
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
  Options options(
      "compare", "Predictions beside measurements: errors, signed bias, worst cases.",
      {"fuseline compare scenarios/measurements/h200-pytorch",
       "fuseline compare scenarios/measurements/h200-pytorch --model gpt2-xl --blocks",
       "fuseline compare prediction.json scenarios/measurements/h200-pytorch/block.csv"});
  options.positional("FILES", "[PREDICTION.json] MEASUREMENT (a folder or a CSV file)", o.files, 2);
  o.only.add_to(options);
  options.flag("--blocks", "every block, measured beside predicted", o.blocks);
  options.flag("--kernels", "every kernel of the blocks with a kernel trace", o.kernels);
  options.flag("--check", "exit status 1 when an accuracy target is missed", o.check);
  options.text("--format", "table|json|csv", "what to print (table)", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", o.format.value_or("table"), {"table", "json", "csv"});
  if (o.files.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "MEASUREMENT",
                      .message = "is missing",
                      .allowed = "a folder of measurements, or one of its CSV files"});
  }
  const Filter filter(o.only);
  const Measurements measurements = filtered(load_measurements(o.files.back()), filter);
  std::optional<Gpu> gpu;
  std::vector<Predictor> predictors;
  if (o.files.size() == 2) {
    SavedPredictions saved = load_predictions(o.files.front());
    check_match(saved, measurements, o.only.gpu, o.files.front());
    predictors.push_back(saved_predictor(std::move(saved)));
  } else {
    gpu = gpu_of(o, measurements);
    predictors = standard_predictors(*gpu, measurements);
  }
  const bool trains = o.only.phase && *o.only.phase == "train";
  ProgressBar bar;
  const ErrorTable table =
      validate(measurements, predictors, trains ? Scope::training : Scope::inference,
               [&bar](std::size_t done, std::size_t count) {
                 bar.show(fmt::format("{} of {} cases", done, count),
                          static_cast<double>(done) / static_cast<double>(count));
               });
  bar.clear();
  if (table.rows.empty()) {
    throw InputError({.file = o.files.front(),
                      .message = "it has no prediction of anything measured in " + o.files.back(),
                      .allowed = "the same model, phase, sizes and a measured policy"});
  }

  const std::vector<Coverage> coverage =
      shipped_coverage(table, gpu ? *gpu : gpu_of(o, measurements));

  std::string text;
  if (format == "json") {
    text = error_table_json(measurements, table, coverage);
  } else if (format == "csv") {
    text = cases_csv(table);
  } else {
    text = heading(measurements) + (gpu ? describe(*gpu, "GPU: ") : "") +
           (gpu ? another_gpu(*gpu, measurements) : "") + "\n" +
           report(o, measurements, predictors, table, coverage);
  }
  CommandResult result{std::move(text), {}, ExitStatus::done};
  if (o.output) {
    write_file_atomically(*o.output, result.output);
    result = {{}, fmt::format("fuseline: written {}\n", *o.output), ExitStatus::done};
  }
  if (o.check && !targets_met(table)) {
    result.messages += "fuseline: an accuracy target is missed\n";
    result.status = ExitStatus::check_failed;
  }
  return result;
}

}  // namespace fuseline
