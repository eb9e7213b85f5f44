// Which experts a row goes to, and the gates that weigh what they make of it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/operators/attributes.h"

namespace fuseline {

// "softmax", as kernels name it too.
const char* name_of(GateWeights weights);

// Of one row: numbers of its experts, and a gate for each.
struct RoutedRow {
  std::vector<std::int64_t> experts;
  std::vector<double> gates;
};

// Row m, whose score for expert e of `experts` is `score(e)`. With assumed loads the row's experts
// are those of a pattern in which expert g is chosen by loads.groups[g] rows; else those of the
// choice.count largest scores, the largest first, of equal ones the first expert.
RoutedRow route_row(const ExpertChoice& choice, std::int64_t m, std::int64_t experts,
                    const std::function<double(std::int64_t)>& score);

// The gradient of the row's scores, by that of its gates `d_gates`; `chosen` are its experts, of
// which those that there are not count for nothing.
// With the shares p = gate / factor and t = sum of p·dgate over the chosen experts,
//   ds_e = factor·p_e·(dgate_e - t), times 1 - sigmoid(s_e) where weights are sigmoids.
// Experts that were not chosen have 0, but -factor·p_e·t where the softmax is one of all scores.
std::vector<double> score_gradients(const ExpertChoice& choice, std::int64_t experts,
                                    const std::function<double(std::int64_t)>& score,
                                    const std::vector<std::int64_t>& chosen,
                                    const std::vector<double>& d_gates);

}  // namespace fuseline
