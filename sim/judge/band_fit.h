// Bands from residuals over measurements, and how well bands hold what was measured.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/gpu/standing.h"
#include "sim/judge/validation.h"
#include "sim/sure/band.h"
#include "sim/sure/traits.h"

namespace fuseline {

// One prediction beside its measurement. `gain`: both are ratios of the times of two plans, the
// predicted one at least 1.
struct Residual {
  WorkClass work;
  std::string model;  // rows of one model are left out together; a GEMM's is its shape
  std::string where;  // GPU, model and sizes: rows of one block
  Standing standing = Standing::fitted;
  double predicted = 1, measured = 1;       // seconds, bytes or a ratio
  std::string gpu = {};                     // name in scenarios/gpus
  std::vector<KernelOutline> kernels = {};  // of a block's time: its gains depend on them
};

// The rows of an error table that have a band, by its predictor `at`; where `instead` is given and
// predicted a case, by that one (constants fitted without the model). `ran_here`: the plans ran on
// our own kernels, so that policies which imitate another system are left out.
std::vector<Residual> residuals_of(const ErrorTable& table, std::size_t at,
                                   std::optional<std::size_t> instead, const std::string& gpu,
                                   Standing standing, bool ran_here);

// Gains of every two plans of one block among rows of subject "time".
std::vector<Residual> gains_of(const std::vector<Residual>& times);

// The band of that row by the table, as factors on what was predicted.
Band band_of(const BandTable& table, const Residual& row);

// InputError: some model has rows of a subject of which no class can be fitted without that model.
void require_rows_for_bands(const std::vector<Residual>& rows);

// The table. Each row's error is taken over the mean error of its class in other models. The
// interval that holds 90 % of these, for a subject and phase, times a class's mean error is the
// class's band. Rows of GPUs that were measured make classes, those of published figures do not.
// And wider by what it takes to hold rows of GPUs on which nothing was fitted: those that were
// checked, and the next one of those that nobody measured (sim/judge/next_machine.h).
BandTable fit_bands(const std::vector<Residual>& rows);

// How well bands hold.
struct Coverage {
  std::string what;  // "time forward"
  std::size_t rows = 0, held = 0;
  double half_width = 0;  // median, of the predicted
  double mean_error = 0;  // of rows, |predicted / measured - 1|
  double score =
      0;  // mean interval score over the predicted: width, and 20 times what lies outside
  [[nodiscard]] double share() const {
    return rows == 0 ? 0 : static_cast<double>(held) / static_cast<double>(rows);
  }
};

using BandOf = std::function<Band(const Residual&)>;
// Per subject and phase, in the order of their first rows.
std::vector<Coverage> coverage_of(const std::vector<Residual>& rows, const BandOf& band);

// Of rows of each model by bands fitted without that model.
std::vector<Coverage> left_out_coverage(const std::vector<Residual>& rows);

// Of rows of GPUs without fitted constants likewise, by bands that are not widened for such GPUs.
std::vector<Coverage> not_widened_coverage(const std::vector<Residual>& rows);

// Of rows of each GPU that was measured by bands that are fitted to the rows of the other such
// GPUs, of other models too. Of subjects that only one of them has there are none.
std::vector<Coverage> other_machine_coverage(const std::vector<Residual>& rows);

}  // namespace fuseline
