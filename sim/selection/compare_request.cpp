#include "sim/selection/compare_request.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "sim/gpu/standing.h"
#include "sim/judge/standard_predictors.h"
#include "sim/selection/saved_match.h"
#include "sim/selection/saved_prediction.h"

namespace fuseline {

namespace {

// Whether the command line leaves this case in: each option that is given must agree.
class Filter {
 public:
  explicit Filter(const SelectionWords& only) : only_(only) {
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

  SelectionWords only_;
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

Gpu predicted_gpu(const SelectionWords& only, const Measurements& measurements) {
  if (only.gpu || measurements.meta.gpu.empty()) return load_gpu_option(only.gpu);
  return load_gpu(measurements.meta.gpu);
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

// How well the shipped bands hold what was measured.
std::vector<Coverage> shipped_coverage(const ErrorTable& table, const Gpu& gpu) {
  std::vector<Residual> rows =
      residuals_of(table, judged_predictor(table), std::nullopt, gpu.name, standing_of(gpu), false);
  std::ranges::copy(gains_of(rows), std::back_inserter(rows));
  return coverage_of(rows, [](const Residual& r) { return band_of(shipped_bands(), r); });
}

}  // namespace

std::size_t judged_predictor(const ErrorTable& table) {
  return std::min<std::size_t>(1, table.predictors.size() - 1);
}

MeasuredComparison compare_measured(
    const std::vector<std::string>& files, const SelectionWords& only,
    const std::function<void(std::size_t done, std::size_t count)>& progress) {
  if (files.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "MEASUREMENT",
                      .message = "is missing",
                      .allowed = "a folder of measurements, or one of its CSV files"});
  }
  const Filter filter(only);
  MeasuredComparison out{.measurements = filtered(load_measurements(files.back()), filter),
                         .gpu = {},
                         .predictors = {},
                         .table = {},
                         .coverage = {}};
  if (files.size() == 2) {
    SavedPredictions saved = load_predictions(files.front());
    check_match(saved, out.measurements, only.gpu, files.front());
    out.predictors.push_back(saved_predictor(std::move(saved)));
  } else {
    out.gpu = predicted_gpu(only, out.measurements);
    out.predictors = standard_predictors(*out.gpu, out.measurements);
  }
  const bool trains = only.phase && *only.phase == "train";
  out.table = validate(out.measurements, out.predictors,
                       trains ? Scope::training : Scope::inference, progress);
  if (out.table.rows.empty()) {
    throw InputError({.file = files.front(),
                      .message = "it has no prediction of anything measured in " + files.back(),
                      .allowed = "the same model, phase, sizes and a measured policy"});
  }
  out.coverage =
      shipped_coverage(out.table, out.gpu ? *out.gpu : predicted_gpu(only, out.measurements));
  return out;
}

}  // namespace fuseline
