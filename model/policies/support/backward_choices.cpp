#include "model/policies/support/backward_choices.h"

#include <algorithm>

#include "base/error.h"
#include "model/policies/support/rules.h"

namespace fuseline {

namespace {

constexpr const char* kRecompute = "recompute";
constexpr const char* kConcatenateSlices = "concatenate_slices";
}  // namespace

std::vector<BackwardChoice> backward_choices() {
  return {{kRecompute, "norms and activations are computed again in the backward pass"},
          {kConcatenateSlices,
           "the gradients of Q, K and V are tensors of their own, put side by side by a kernel"},
          {kSaveProbabilities,
           "attention's steps stay kernels of their own and save their probabilities for the "
           "backward pass"}};
}

std::vector<std::string> choices_of(const BackwardOptions& options) {
  std::vector<std::string> names;
  if (!options.recompute.empty()) names.emplace_back(kRecompute);
  if (options.concatenate_slices) names.emplace_back(kConcatenateSlices);
  if (!options.save_log_sum_exp) names.emplace_back(kSaveProbabilities);
  return names;
}

BackwardOptions options_of(const std::vector<std::string>& choices, const Graph& forward) {
  BackwardOptions options;
  options.save_log_sum_exp = true;
  for (const std::string& name : choices) {
    if (name == kRecompute) {
      options.recompute = recompute_options(forward).recompute;
    } else if (name == kConcatenateSlices) {
      options.concatenate_slices = true;
    } else {
      FUSELINE_ASSERT(name == kSaveProbabilities, name);
      options.save_log_sum_exp = false;
    }
  }
  return options;
}

}  // namespace fuseline
