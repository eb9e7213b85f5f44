// Fits the hierarchy model's constants to measurements, all of them or all but those of one model.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/sharing.h"
#include "sim/gpu/gpu.h"
#include "sim/judge/fit.h"
#include "sim/measured/measurement.h"

namespace fuseline {

// What the fit makes small: the logarithm of predicted over measured, from the relative error. A
// ratio below a twentieth counts as that, for bytes that L2 was predicted to hold have no
// logarithm.
double log_error(double error);

// The constants that measurements of blocks and GEMMs determine, with the round values a fit starts
// from: they are not the shipped ones, so that a fit without a model knows nothing of it.
std::vector<FitParameter> refit_parameters();

// Of parameters that start at the constants in use, those that matter to the residuals. `residuals`
// takes the constants that differ from these.
std::vector<FitParameter> told_parameters(const std::vector<FitParameter>& all,
                                          const ResidualFn& residuals);

struct RefitOptions {
  std::optional<std::string> without{};  // model whose blocks, kernels and GEMMs are left out
  int iterations = 5;
  // Starts from the GPU's own constants instead of round ones, and fits those alone that the
  // measurements tell something of: the others keep their values and are not in the result.
  bool from_gpu = false;
  std::function<void(int)> progress = {};  // evaluations done so far
  Sharing* sharing = nullptr;              // who simulates; null: the threads of this process
};

// Residuals: log(predicted / measured) of block times, GEMM times (m >= 128) and HBM bytes of
// traced kernels with a GEMM. InputError when nothing is left to fit to, or `without` names no
// measured model. Runs for minutes: each evaluation simulates every measured block.
FitResult refit(const Measurements& measurements, const Gpu& gpu, const RefitOptions& options);

// Residuals whose parts are shared: `part` gives those of one of kFitParts, and all follow in
// order. As many parts whatever the number of threads and ranks: the sums of a fit are then the
// same everywhere.
inline constexpr std::size_t kFitParts = 16;
std::vector<double> shared_residuals(Sharing& sharing, const ConstantValues& constants,
                                     const std::function<std::vector<double>(std::size_t)>& part);

// The GPU with these constants in place of its own.
Gpu with_constants(Gpu gpu, const ConstantValues& constants);

// The constants as the [calibration] section of a GPU file.
std::string calibration_toml(const ConstantValues& constants, const std::string& source,
                             const std::string& date);

// The constants fitted without each measured model, from FOLDER/without-MODEL.toml; models without
// such a file are not in the map. InputError as load_gpu.
std::map<std::string, ConstantValues> load_left_out_constants(
    const std::string& folder, const std::vector<std::string>& models);

}  // namespace fuseline
