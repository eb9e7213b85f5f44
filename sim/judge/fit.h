// Fits the hierarchy model's constants to measurements: damped least squares on logarithms.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fuseline {

// A positive constant, fitted as initial·exp(x) with x clamped so that the value stays in [lower,
// upper].
struct FitParameter {
  std::string name;
  double initial = 1;
  double lower = 0;
  double upper = 0;
  double prior_sigma = 0.5;  // of x: how far from `initial` the constant may drift without evidence
};

using ConstantValues = std::map<std::string, double>;

// Residuals of a set of constants, usually log(predicted / measured), always in the same order and
// number.
using ResidualFn = std::function<std::vector<double>(const ConstantValues&)>;

struct FitResult {
  ConstantValues constants;
  double initial_mean_abs = 0;  // mean |residual| before
  double mean_abs = 0;          // and after the fit
  int evaluations = 0;
};

struct FitOptions {
  int iterations = 6;
  double step = 0.03;          // finite-difference step of x
  double robust_scale = 0.04;  // residuals beyond it count linearly (iteratively reweighted)
};

// Levenberg-Marquardt with finite-difference Jacobian, reweighted so that the mean absolute
// residual is what falls. Constants without influence stay at `initial` because of the prior. The
// result is never worse than the start. InternalError when the residual count changes between
// calls.
FitResult fit_constants(const std::vector<FitParameter>& parameters, const ResidualFn& residuals,
                        const FitOptions& options = {});

}  // namespace fuseline
