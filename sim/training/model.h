// What a training loop needs of a model: the loss of a batch and the gradients of all weights.
#pragma once

#include <functional>

#include "sim/training/parameters.h"
#include "sim/training/text.h"

namespace fuseline::training {

template <class Real>
struct StepResult {
  double loss = 0;  // mean over the batch's tokens
  Values<Real> gradients;
};

// Forward and backward pass at these weights.
template <class Real>
using Step = std::function<StepResult<Real>(const Batch&, const Values<Real>& weights)>;

}  // namespace fuseline::training
