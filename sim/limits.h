// Lower bounds that no implementation of a block can pass.
#pragma once

#include "model/graph.h"
#include "sim/estimate.h"
#include "sim/gpu.h"

namespace fuseline {

// compulsory: inputs, weights, tables and caches read once, outputs and new cache rows written
// once. capacity_bound: a GEMM with S words on chip (L2, shared memory and registers) moves at
// least about
//   2·M·N·K/√S words (Hong and Kung; Irony, Toledo, Tiskin), summed over GEMMs, or compulsory if
//   more.
// time: the longer of FLOPs at the tensor peak and compulsory bytes at the sustained bandwidth.
Limits limits_of(const Graph& graph, const Gpu& gpu);

// Datasheet tensor rate for operands of this width; fp32 operands run as TF32.
FlopsPerSecond tensor_peak(const Gpu& gpu, Dtype dtype);

}  // namespace fuseline
