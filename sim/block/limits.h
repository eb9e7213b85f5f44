// Lower bounds that no implementation of a block can pass.
#pragma once

#include "model/graph.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Of one block of a long row of equal blocks, each with its own weights and caches. `graph`: the
// block as it is given, before any rewrite.
//   compulsory      inputs, tables, weights, caches read once, outputs and new cache rows written
//                   once
//   own             of these the weights, caches and gradients of weights, which no other block
//                   touches and which therefore cross HBM
//   least           own without weights of one row (they may be folded into a matrix beforehand),
//                   and of the rest what exceeds the L2: the blocks before and after may leave
//                   inputs, tables and outputs there
//   capacity_bound  a GEMM with S words on chip (L2, shared memory and registers) moves at least
//                   2·M·N·K/√S - 2·S words (Smith, Lowery, Langou, van de Geijn, arXiv 1702.02017);
//                   summed over GEMMs, or `least` if more
//   time            the longer of FLOPs at the tensor rate of the boost clock and `least` at the
//                   fastest sustained rate that any kernel of the model reaches
Limits limits_of(const Graph& graph, const Gpu& gpu);

// Datasheet tensor rate for operands of this width; fp32 operands run as TF32.
FlopsPerSecond tensor_peak(const Gpu& gpu, Dtype dtype);

// The same at the boost clock, where the datasheet quotes a lower one.
FlopsPerSecond boosted_tensor_peak(const Gpu& gpu, Dtype dtype);

// The highest HBM rate that a kernel reaches: the sustained one, or more where a calibration says
// so.
BytesPerSecond fastest_hbm(const Gpu& gpu);

}  // namespace fuseline
