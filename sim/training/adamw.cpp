#include "sim/training/adamw.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fuseline::training {

template <class Real>
AdamW<Real>::AdamW(const std::vector<Parameter>& parameters, const AdamWOptions& options)
    : parameters_(parameters), options_(options) {
  for (const Parameter& p : parameters) {
    m_.emplace_back(p.count());
    v_.emplace_back(p.count());
  }
}

template <class Real>
void AdamW<Real>::step(const Values<Real>& gradients, Values<Real>& weights) {
  FUSELINE_ASSERT(gradients.size() == m_.size() && weights.size() == m_.size(), "parameters");
  ++steps_;
  const double t = static_cast<double>(steps_);
  double squares = 0;
  for (const std::vector<Real>& g : gradients)
    for (const Real e : g) squares += static_cast<double>(e) * static_cast<double>(e);
  const double norm = std::sqrt(squares);
  const Real clip = static_cast<Real>(norm > options_.clip_norm ? options_.clip_norm / norm : 1.0);
  const double warm_up = static_cast<double>(std::max<std::int64_t>(1, options_.warm_up_steps));
  const Real rate = static_cast<Real>(options_.learning_rate * std::min(1.0, t / warm_up));
  const Real beta1 = static_cast<Real>(options_.beta1);
  const Real beta2 = static_cast<Real>(options_.beta2);
  const Real unbias1 = static_cast<Real>(1.0 / (1.0 - std::pow(options_.beta1, t)));
  const Real unbias2 = static_cast<Real>(1.0 / (1.0 - std::pow(options_.beta2, t)));
  const Real epsilon = static_cast<Real>(options_.epsilon);
  for (std::size_t p = 0; p < weights.size(); ++p) {
    const Real decay = static_cast<Real>(parameters_[p].decays ? options_.weight_decay : 0.0);
    FUSELINE_ASSERT(gradients[p].size() == m_[p].size(), parameters_[p].tensor);
    for (std::size_t i = 0; i < weights[p].size(); ++i) {
      const Real g = clip * gradients[p][i];
      m_[p][i] = beta1 * m_[p][i] + (1 - beta1) * g;
      v_[p][i] = beta2 * v_[p][i] + (1 - beta2) * g * g;
      const Real direction = m_[p][i] * unbias1 / (std::sqrt(v_[p][i] * unbias2) + epsilon);
      weights[p][i] -= rate * (direction + decay * weights[p][i]);
    }
  }
}

template class AdamW<float>;
template class AdamW<double>;

}  // namespace fuseline::training
