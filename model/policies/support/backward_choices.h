// How a training step's backward pass is made, as names that stand among the rewrites: a plan says
// by them what its policy chose, and policy `custom` takes them.
#pragma once

#include <string>
#include <vector>

#include "model/backward.h"

namespace fuseline {

// Online softmax has no probabilities to save: with this choice attention's steps are not fused.
inline constexpr const char* kSaveProbabilities = "save_probabilities";

struct BackwardChoice {
  const char* name;
  const char* summary;  // a sentence without a full stop
};

// In the order in which a plan names them. Without any of them: attention saves the log-sum-exp of
// its scores, and every other forward result that is needed is saved.
std::vector<BackwardChoice> backward_choices();

// The choices that the options of a policy stand for. Asserts that there are such choices.
std::vector<std::string> choices_of(const BackwardOptions& options);

// Back again. The names are some of backward_choices().
BackwardOptions options_of(const std::vector<std::string>& choices, const Graph& forward);

}  // namespace fuseline
