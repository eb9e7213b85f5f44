// What the code of a loop over elements costs: instructions of an element, threads that share it.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "model/operators/operator.h"
#include "model/plan.h"
#include "sim/gpu/constants.h"

namespace fuseline {

// Whether an operator of the kernel has one of these costs.
bool has_cost(const Graph& graph, const Kernel& kernel, std::initializer_list<StreamCost> costs);

// Instructions that a lane issues for an element: of a loop that says nothing else of itself, and
// of the kernel's operators.
double instructions_of(Implementation implementation, const StreamConstants& c);
double instructions_of(const Graph& graph, const Kernel& kernel, const StreamConstants& c);

// Threads of one block and elements that a thread has at once.
struct Residency {
  std::int64_t threads = 0;
  std::int64_t per_thread = 0;
};

Residency residency(Implementation implementation, const StreamConstants& c);

}  // namespace fuseline
