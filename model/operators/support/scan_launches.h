// A scan with a rate for every head as operators of a framework compute it, chunk by chunk.
#pragma once

#include "model/framework_launch.h"

namespace fuseline {

class Graph;
struct Op;

// For an operator with the operands of selective_scan. Without launches where a framework needs a
// library's kernel: single tokens, tokens behind a state, and rates for every column of a state.
// The last chunk is padded.
FrameworkLaunches scan_launches(const Graph& graph, const Op& op);

}  // namespace fuseline
