#include "sim/block/roofline.h"

#include <algorithm>

#include "model/operators/operator_table.h"
#include "sim/block/limits.h"
#include "sim/memory/traffic.h"

namespace fuseline {
namespace {

// Of the first operator with a matrix product; norms around it may compute in fp32.
Dtype operand_type(const Graph& graph, const Kernel& kernel) {
  for (const OpId id : kernel.ops) {
    const Op& op = graph.op(id);
    if (is_contraction(op)) {
      return graph.tensor(op.reads.front().tensor).dtype;
    }
  }
  return Dtype::fp32;
}

bool uses_tensor_cores(const Kernel& kernel) {
  return kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::attention ||
         kernel.kind == KernelKind::scan || kernel.kind == KernelKind::block;
}

}  // namespace

std::vector<KernelEstimate> roofline(const Plan& plan, const Gpu& gpu) {
  std::vector<KernelEstimate> kernels;
  kernels.reserve(plan.kernels.size());
  for (const Kernel& kernel : plan.kernels) {
    KernelEstimate e;
    e.name = kernel.name;
    e.kind = kernel.kind;
    for (const OpId op : kernel.ops) e.operators.push_back(plan.graph.op(op).name);
    e.flops = flops(plan.graph, kernel);
    const DistinctBytes distinct = distinct_bytes(plan.graph, kernel);
    e.hbm_read = distinct.loaded;
    e.hbm_write = distinct.stored;
    e.compulsory = distinct.loaded + distinct.stored;
    e.l2 = e.compulsory;
    if (uses_tensor_cores(kernel)) {
      e.tensor_time = e.flops / tensor_peak(gpu, operand_type(plan.graph, kernel));
    } else if (gpu.vector_fp32.value() > 0) {
      e.tensor_time = e.flops / gpu.vector_fp32;
    }
    e.hbm_time = e.compulsory / gpu.hbm_bandwidth_sustained;
    e.time = std::max(e.tensor_time, e.hbm_time);
    e.bound = e.tensor_time >= e.hbm_time ? Bound::tensor : Bound::hbm;
    kernels.push_back(std::move(e));
  }
  return kernels;
}

}  // namespace fuseline
