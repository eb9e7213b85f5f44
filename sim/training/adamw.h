// AdamW (Loshchilov, Hutter 2019, arXiv 1711.05101): Adam with decoupled weight decay, after
// clipping the gradient's norm, with a linear warm-up of the learning rate.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/parameters.h"

namespace fuseline::training {

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip_norm = 1.0;           // of all gradients together
  std::int64_t warm_up_steps = 20;  // the rate grows linearly to learning_rate over them
};

// Real: of the weights, their moments and the gradients (fp32 masters, or fp64).
template <class Real>
class AdamW {
 public:
  AdamW(const std::vector<Parameter>& parameters, const AdamWOptions& options);

  // Step t = 1, 2, ...:
  //   g *= min(1, clip / ‖g‖),  m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²
  //   w -= η_t (m / (1 - β1^t) / (sqrt(v / (1 - β2^t)) + ε) + λ w),  η_t = η min(1, t / warm-up)
  // λ only where the parameter decays. Sums of norms run in the parameters' order.
  void step(const Values<Real>& gradients, Values<Real>& weights);

 private:
  std::vector<Parameter> parameters_;
  AdamWOptions options_;
  std::int64_t steps_ = 0;
  Values<Real> m_, v_;
};

}  // namespace fuseline::training
