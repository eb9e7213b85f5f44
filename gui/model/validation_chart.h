// Predicted against measured: scatter with a band of ±10 %, and the table of errors.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/geometry.h"
#include "gui/model/latest_wins.h"
#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "gui/model/table.h"
#include "sim/judge/validation.h"

namespace fuseline::gui {

struct ScatterPoint {
  std::string label;  // "llama2-7b eager forward 1x2048"
  Quantity quantity = Quantity::block_time;
  Point at;          // measured, predicted, in µs or bytes
  double error = 0;  // (predicted - measured) / measured
  bool inside_band = false;
  std::string tooltip;
  Colour colour;  // of the predictor: roles run, by its place
  std::size_t predictor = 0;
  std::optional<RunId> run;  // when the case is a measured run of the document
  Subject about{};           // the prediction
};

struct Scatter {
  Quantity quantity = Quantity::block_time;
  std::string title, x_label, y_label;
  Range axis;  // both axes, log, whole decades around the measured values
  std::vector<ScatterPoint> points;
  std::size_t inside_band = 0;  // of the hierarchy's points, or of all when there is no hierarchy
  std::size_t judged = 0;
};

inline constexpr double kBand = 0.10;

struct ErrorLine {
  std::string what;
  std::vector<std::string> cells;  // "4.2 % (−1.3 %)" mean error and bias, one each predictor; "–"
  std::optional<double> target;
  std::vector<bool> meets_target;
};

struct ValidationChart {
  std::vector<std::string> predictors;
  std::vector<Scatter> scatters;  // those with points: time and traffic of blocks, of GEMMs
  std::vector<ErrorLine> errors;
  std::vector<std::string> not_judged;
  std::string source;   // of the measurements
  std::string machine;  // of all measurements: for which GPU they are predicted, and why not the
                        // session's; empty where that is the session's
  std::string problem;  // what to do when there is nothing to judge by
};

// The measured runs of the document alone, each judged by its own prediction: no further work.
ValidationChart validation_of_runs(const Results& results);

// All cases of the measurements by all standard predictors, as `fuseline compare`. Seconds of work;
// progress counts cases and predictors. Cancelled.
// `gpu`: the one that they were taken on, see measured_gpu().
ErrorTable judge(const Gpu& gpu, const Measurements& measurements, const std::stop_token& stop,
                 const Progress& progress);
// The GPU that the measurements were taken on: the session's where it has that name, else the
// described one. InputError: they do not say on which GPU they were taken, or it is not described.
Gpu measured_gpu(const Setup& setup, const Measurements& measurements);

// `gpu`: the one of judge().
ValidationChart validation_chart(const ErrorTable& table, const MeasurementMeta& meta,
                                 const Gpu& gpu);

// For ValidationChart::machine. `chosen`: the session's GPU.
std::string whose_predictions(const Gpu& measured, const Gpu& chosen);

Table scatter_table(const ValidationChart& chart);
Table error_table(const ErrorTable& table, const Gpu& gpu);

}  // namespace fuseline::gui
