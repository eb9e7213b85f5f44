#include "sim/judge/fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fuseline {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

ConstantValues constants_at(const std::vector<FitParameter>& parameters, const VectorXd& x) {
  ConstantValues constants;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const FitParameter& p = parameters[i];
    constants[p.name] =
        std::clamp(p.initial * std::exp(x[static_cast<Eigen::Index>(i)]), p.lower, p.upper);
  }
  return constants;
}

double mean_abs(const VectorXd& r) { return r.size() == 0 ? 0.0 : r.cwiseAbs().mean(); }

// The cost that an iteration lowers: Huber loss of the residuals plus the prior on x.
double cost(const VectorXd& r, const VectorXd& x, const VectorXd& prior_weight, double scale) {
  double sum = 0;
  for (const double value : r) {
    const double a = std::abs(value);
    sum += a <= scale ? 0.5 * a * a : scale * (a - 0.5 * scale);
  }
  return sum + 0.5 * x.cwiseAbs2().dot(prior_weight);
}

}  // namespace

FitResult fit_constants(const std::vector<FitParameter>& parameters, const ResidualFn& residuals,
                        const FitOptions& options) {
  const auto count = static_cast<Eigen::Index>(parameters.size());
  FitResult result;
  Eigen::Index residual_count = -1;
  const auto evaluate = [&](const VectorXd& x) {
    const std::vector<double> values = residuals(constants_at(parameters, x));
    ++result.evaluations;
    const auto n = static_cast<Eigen::Index>(values.size());
    if (residual_count < 0) residual_count = n;
    FUSELINE_ASSERT(n == residual_count, "the residual count changed during a fit");
    return VectorXd(Eigen::Map<const VectorXd>(values.data(), n));
  };

  VectorXd x = VectorXd::Zero(count);
  VectorXd r = evaluate(x);
  result.initial_mean_abs = mean_abs(r);
  // The prior counts like a handful of residuals of the robust scale's size.
  VectorXd prior_weight(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const double sigma = parameters[static_cast<std::size_t>(i)].prior_sigma;
    prior_weight[i] = options.robust_scale * options.robust_scale / (sigma * sigma);
  }

  double current = cost(r, x, prior_weight, options.robust_scale);
  double damping = 1e-3;
  for (int iteration = 0; iteration < options.iterations && count > 0; ++iteration) {
    MatrixXd jacobian(r.size(), count);
    for (Eigen::Index i = 0; i < count; ++i) {
      VectorXd shifted = x;
      shifted[i] += options.step;
      jacobian.col(i) = (evaluate(shifted) - r) / options.step;
    }
    VectorXd weight(r.size());
    for (Eigen::Index j = 0; j < r.size(); ++j) {
      weight[j] = std::min(1.0, options.robust_scale / std::max(std::abs(r[j]), 1e-12));
    }
    MatrixXd normal = jacobian.transpose() * weight.asDiagonal() * jacobian;
    normal.diagonal() += prior_weight;
    const VectorXd gradient =
        jacobian.transpose() * weight.cwiseProduct(r) + prior_weight.cwiseProduct(x);

    bool improved = false;
    for (int attempt = 0; attempt < 5 && !improved; ++attempt) {
      MatrixXd damped = normal;
      damped.diagonal() += damping * normal.diagonal();
      const VectorXd candidate = x - damped.ldlt().solve(gradient);
      const VectorXd candidate_r = evaluate(candidate);
      const double candidate_cost =
          cost(candidate_r, candidate, prior_weight, options.robust_scale);
      improved = candidate_cost < current;
      damping = improved ? damping * 0.3 : damping * 10;
      if (improved) {
        x = candidate;
        r = candidate_r;
        current = candidate_cost;
      }
    }
    if (!improved) break;
  }
  result.constants = constants_at(parameters, x);
  result.mean_abs = mean_abs(r);
  return result;
}

}  // namespace fuseline
