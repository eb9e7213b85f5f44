#include "sim/judge/spread_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "sim/sure/traits.h"

namespace fuseline {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kRowsForTraits = 20;
// Holds slopes of traits that few models have near 0: left out, such a model would be predicted by
// a slope that the others do not support. Widths judged on half of the models hardly depend on it
// between 10 and 40.
constexpr double kPriorRows = 20;
constexpr double kLeastSize = 1e-4;  // a measured median has four digits
constexpr double kLeastDeviation = 1e-6;
constexpr int kNewtonSteps = 50;
constexpr double kLongestStep = 1, kSmallStep = 1e-6;

// Of rows and traits, less each trait's mean and over its deviation; 0 where a trait is constant.
struct Standardised {
  MatrixXd rows;
  VectorXd mean, deviation, least, most;
};

Standardised standardised(const ResidualRows& rows, std::size_t traits) {
  MatrixXd m(std::ssize(rows), static_cast<Index>(traits));
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j)
      m(i, j) = rows[static_cast<std::size_t>(i)]->work.traits[static_cast<std::size_t>(j)];
  Standardised s{.rows = m,
                 .mean = m.colwise().mean().transpose(),
                 .deviation = VectorXd::Zero(m.cols()),
                 .least = m.colwise().minCoeff().transpose(),
                 .most = m.colwise().maxCoeff().transpose()};
  for (Index j = 0; j < m.cols(); ++j) {
    s.rows.col(j).array() -= s.mean[j];
    const double deviation = std::sqrt(s.rows.col(j).squaredNorm() / static_cast<double>(m.rows()));
    s.deviation[j] = deviation > kLeastDeviation ? deviation : 0;
    if (s.deviation[j] > 0) {
      s.rows.col(j) /= s.deviation[j];
    } else {
      s.rows.col(j).setZero();
    }
  }
  return s;
}

// Newton's steps on the likelihood, which has one maximum. The first of the result is a.
VectorXd most_likely(const MatrixXd& traits, const VectorXd& errors) {
  MatrixXd x(traits.rows(), traits.cols() + 1);
  x << VectorXd::Ones(traits.rows()), traits;
  VectorXd prior = VectorXd::Constant(x.cols(), kPriorRows);
  prior[0] = 0;
  VectorXd b = VectorXd::Zero(x.cols());
  b[0] = std::log(errors.mean());
  for (int i = 0; i < kNewtonSteps; ++i) {
    const VectorXd over = (errors.array() / (x * b).array().exp()).matrix();
    const VectorXd slope = x.transpose() * (over.array() - 1).matrix() - prior.cwiseProduct(b);
    MatrixXd curvature = x.transpose() * over.asDiagonal() * x;
    curvature.diagonal() += prior;
    VectorXd step = curvature.ldlt().solve(slope);
    const double longest = step.cwiseAbs().maxCoeff();
    if (longest > kLongestStep) step *= kLongestStep / longest;
    b += step;
    if (longest < kSmallStep) break;
  }
  return b;
}

}  // namespace

std::vector<Spread> fit_spreads(const ResidualRows& rows, const std::vector<double>& errors) {
  if (rows.size() < kRowsForTraits) return {};
  const WorkClass& work = rows.front()->work;
  const std::vector<std::string>& names = trait_names(work.what);
  ResidualRows known;
  std::vector<double> sizes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (names.empty() || rows[i]->work.traits.size() != names.size()) continue;
    known.push_back(rows[i]);
    sizes.push_back(std::max(kLeastSize, errors[i]));
  }
  if (known.size() < kRowsForTraits) return {};
  const Standardised s = standardised(known, names.size());
  const VectorXd b = most_likely(s.rows, Eigen::Map<const VectorXd>(sizes.data(), s.rows.rows()));
  std::vector<Spread> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto j = static_cast<Index>(i);
    if (s.deviation[j] == 0) continue;
    out.push_back({.what = work.what,
                   .phase = work.phase,
                   .trait = names[i],
                   .slope = b[j + 1] / s.deviation[j],
                   .centre = s.mean[j],
                   .least = s.least[j],
                   .most = s.most[j]});
  }
  return out;
}

}  // namespace fuseline
