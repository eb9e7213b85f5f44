// Figures that others published, beside what is predicted of them. Nothing is fitted to them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/custom_fusion.h"
#include "sim/gpu/standing.h"
#include "sim/judge/band_fit.h"

namespace fuseline {

// A row of scenarios/published/figures.csv.
struct PublishedFigure {
  std::string id;
  std::string quality;  // A usable, B usable with its caveat, C doubtful, N needs what is not here
  std::string source, citation, config, framework, caveat;
  std::string published_gpu, gpu;  // as published; name in scenarios/gpus
  std::string what;                // "model", "gemm", "fusion"; empty: not predicted
  std::string model{}, policy{};   // what the framework's kernels are predicted as
  bool slack = false;              // no policy imitates the framework: its own time is in the error
  CustomFusion fusion{};           // of a fusion: what the policy's plan gets on top
  Workload workload{};
  std::int64_t m = 0, n = 0, k = 0;
  std::string metric, unit;
  double value = 0;
  std::string not_predicted;  // why
};

// InputError (file, line, column, value, allowed): an unknown GPU, policy, phase, metric or unit, a
// row with neither a prediction nor a reason.
std::vector<PublishedFigure> load_published_figures(const std::string& path);

// Where an error comes from: of GPUs that were measured here; of GPUs that never were; of
// frameworks whose own time nobody models.
enum class Cause : std::uint8_t { model, gpu, framework };

struct JudgedFigure {
  PublishedFigure figure;
  std::optional<double> predicted{};  // in the figure's unit
  Cause cause = Cause::model;
  std::optional<Residual> residual{};  // for bands
  // Of a fusion: the share of the time without it that its operators' kernels take. What was
  // published beyond that share is not the fusion's: Cause::framework.
  std::optional<double> share{};
  std::string verdict{};        // of a fusion: "faster", "slower", "too close to call"
  std::string not_predicted{};  // why

  // Of the time, above 0 where the prediction is too slow, whatever the metric.
  [[nodiscard]] std::optional<double> error() const;
};

JudgedFigure judge(const PublishedFigure& figure);

// The rows for bands of GPUs that nobody here measured. Of a framework that no policy imitates only
// figures that are faster than predicted: it can only add time, so the prediction was wrong there.
std::vector<Residual> published_rows(const std::vector<JudgedFigure>& figures);

// Errors of the figures that share a key.
struct FigureGroup {
  Cause cause;
  std::string gpu, phase, metric;
  std::size_t figures = 0;
  double mean_error = 0, bias = 0;
};
std::vector<FigureGroup> groups_of(const std::vector<JudgedFigure>& figures);

const char* name_of(Cause);

}  // namespace fuseline
