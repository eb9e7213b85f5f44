// Predicted beside measured: errors per case, mean absolute percentage error (MAPE), signed bias,
// worst cases. Several predictors (roofline, hierarchy, constants fitted without the judged model)
// are judged on the same cases.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/judge/measured_tiles.h"
#include "sim/measured/measurement.h"
#include "sim/sure/band.h"
#include "sim/sure/traits.h"

namespace fuseline {

using PredictBlock = std::function<PlanEstimate(const BlockCase&)>;
using PredictGemm = std::function<KernelEstimate(const MeasuredGemm&)>;

// A column of the error table. An empty function, or a throw of Unpredicted, leaves the case out.
struct Predictor {
  std::string name;
  PredictBlock block;
  PredictGemm gemm;
};

// Thrown by a predictor that has nothing to say about a case.
struct Unpredicted {};

// Predicts by simulation, of blocks as they were timed: replays on the same input. `gpu_for` gives
// the GPU description to judge a model with: the same one always, or one whose constants were
// fitted without that model. The name is empty for a GEMM of no model. `models`: those that the
// measurements are of.
// `tiles`: those that ran.
using GpuFor = std::function<const Gpu&(const std::string& model)>;
Predictor simulated_predictor(std::string name, Fidelity fidelity, std::vector<ModelConfig> models,
                              const GpuFor& gpu_for, MeasuredTiles tiles = {});

// The models that blocks and traces name, loaded, in alphabetical order. InputError as load_model.
std::vector<ModelConfig> measured_models(const Measurements& measurements);

// The projections y[m,n] = x[m,k] w[n,k]^T of a model's blocks.
struct Projections {
  std::string model;
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;  // [n, k]

  [[nodiscard]] bool have(const MeasuredGemm& gemm) const {
    return shapes.contains({gemm.n, gemm.k});
  }
};
Projections projections_of(const ModelConfig& model);

// The first of the models with a projection of that shape; empty when there is none.
std::string model_of_gemm(const MeasuredGemm& gemm, const std::vector<Projections>& models);

// kernel_time: of the kernels of a trace that were timed without a profiler and take at least a
// hundredth of their block.
enum class Quantity : std::uint8_t {
  block_time,
  kernel_time,
  gemm_time,
  block_hbm,
  gemm_kernel_hbm
};
using Amount = std::variant<Seconds, Bytes>;

// One measured amount and what each predictor said of it.
struct JudgedCase {
  Quantity quantity = Quantity::block_time;
  std::string label;  // "llama2-7b eager forward 1x2048 gateup"
  BlockCase block;    // not for gemm_time
  Amount measured;
  std::vector<std::optional<Amount>> predicted;       // by predictor
  std::vector<std::optional<WorkClass>> works{};      // what each prediction is of, for its band
  std::vector<std::vector<KernelOutline>> kernels{};  // of a block's time, of each prediction

  // (predicted - measured) / measured.
  [[nodiscard]] std::optional<double> error(std::size_t predictor) const;
};

struct ErrorStats {
  std::size_t cases = 0;
  double mape = 0;   // mean |error|
  double bias = 0;   // mean error
  double worst = 0;  // the error of largest magnitude, signed
};

// One line of the table of the project's accuracy goals.
struct ErrorRow {
  std::string what;
  Quantity quantity = Quantity::block_time;
  bool is_worst_case = false;  // judged by |worst| and not by the mean
  std::vector<ErrorStats> by_predictor;
  std::optional<double> target;  // at most

  [[nodiscard]] bool meets_target(std::size_t predictor) const;
};

struct ErrorTable {
  std::vector<std::string> predictors;
  std::vector<ErrorRow> rows;
  std::vector<JudgedCase> cases;
  std::vector<std::string> not_judged;  // why measurements were left out, one line each
};

// Which blocks are judged together: their goals differ.
enum class Scope : std::uint8_t { inference, training };

// Judges the scope's blocks whose execution is a policy, their kernel traces, and library GEMMs of
// at least 128 rows. Deterministic; each predictor sees each case once. `progress`: how many of how
// many measured blocks, traces and GEMMs have been judged.
using JudgeProgress = std::function<void(std::size_t done, std::size_t count)>;
ErrorTable validate(const Measurements& measurements, std::span<const Predictor> predictors,
                    Scope scope = Scope::inference, const JudgeProgress& progress = {});

ErrorStats error_stats(std::span<const double> errors);

// The `count` cases of that quantity with the largest |error| of the predictor, worst first.
std::vector<JudgedCase> worst_cases(const ErrorTable& table, Quantity quantity,
                                    std::size_t predictor, std::size_t count);

// Which measured kernel corresponds to which predicted one: both sequences in launch order are
// aligned so that as many as possible of the same kind meet. Indices; every pair is of one kind.
struct KernelPair {
  std::size_t measured;
  std::size_t predicted;
};
std::vector<KernelPair> align_kernels(std::span<const KernelKind> measured,
                                      std::span<const KernelKind> predicted);

const char* name_of(Quantity);

}  // namespace fuseline
