// What the gradients of scans have in common.
#pragma once

#include "model/graph.h"
#include "model/operators/support/view.h"

namespace fuseline {

class Adjoint;

// The longest sum: a gradient of the step sums a state's products with what all later tokens gave.
std::int64_t scan_gradient_terms(const Graph& graph, const Op& op);

// The rule of selective_scan: keeps the states that the backward pass begins its pieces with, and
// appends the operator of the gradient. Keys and queries are shared by heads, which add up their
// gradients in fp32.
void selective_scan_gradient(Adjoint& a);

namespace reference {

// In fp64, with all states at hand; what the forward pass kept is not read.
void scan_gradient(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out);

}  // namespace reference

}  // namespace fuseline
