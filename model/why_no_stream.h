// The rules of kernels without a mainloop, and the words on partial sums that they share with those
// of products (model/why_not.cpp).
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"
#include "model/operators/operator.h"

namespace fuseline {

inline bool is_finisher(const Op& op) { return op.kind->finishes != Sums::none; }
inline bool leaves_partials(const Op& op) { return op.kind->partial != Sums::none; }

// Why a finisher cannot share a kernel: other thread blocks make its partials.
std::string finisher_reason(const Op& op);

// Why operators without a mainloop cannot be one kernel; empty = they can. There is one index space
// for all, and only one row width where rows are resident.
std::string why_no_stream_program(const Graph& graph, const std::vector<OpId>& ops);

}  // namespace fuseline
