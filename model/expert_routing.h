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

// Row m, whose score for expert e of `experts` is `score(e)`. With assumed loads a fixed pattern
// chooses the row's experts, such that loads.groups[g] rows choose expert g. Otherwise the row goes
// to the experts of the choice.count largest scores, the largest first. Of equal scores the expert
// with the lower number comes first.
RoutedRow route_row(const ExpertChoice& choice, std::int64_t m, std::int64_t experts,
                    const std::function<double(std::int64_t)>& score);

// The gradient of the row's scores from that of its gates, `d_gates`. `chosen` are the row's
// experts; numbers of experts that do not exist are passed over. With the shares p = gate / factor
// and t = sum of p·dgate over the chosen experts,
//   ds_e = factor·p_e·(dgate_e - t), times 1 - sigmoid(s_e) where weights are sigmoids.
// The gradient of an expert that was not chosen is 0, or -factor·p_e·t where the softmax is taken
// over the scores of all experts.
std::vector<double> score_gradients(const ExpertChoice& choice, std::int64_t experts,
                                    const std::function<double(std::int64_t)>& score,
                                    const std::vector<std::int64_t>& chosen,
                                    const std::vector<double>& d_gates);

}  // namespace fuseline
