// What the patterns of norms have in common: a norm of all columns, or of those of every head.
#pragma once

#include "model/import/pattern.h"

namespace fuseline {

// Adds the step whose weights are vectors of the normed columns. `heads`: the operator for columns
// of one head; empty where there is none.
std::optional<TensorView> norm_step(Translator& t, std::size_t x, const char* call,
                                    const char* heads, const std::vector<MatrixColumns>& weights,
                                    double eps);

}  // namespace fuseline
