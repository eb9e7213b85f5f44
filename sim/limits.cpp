#include "sim/limits.h"

#include <algorithm>
#include <cmath>

#include "model/operators.h"

namespace fuseline {

FlopsPerSecond tensor_peak(const Gpu& gpu, Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return gpu.tensor_bf16;
    case Dtype::fp16:
      return gpu.tensor_fp16;
    case Dtype::fp32:
      break;
  }
  return gpu.tensor_bf16 / 2;
}

Limits limits_of(const Graph& graph, const Gpu& gpu) {
  Limits limits;
  const CompulsoryBytes compulsory = compulsory_bytes(graph);
  limits.compulsory = compulsory.read + compulsory.written;

  const double on_chip =
      (gpu.l2_capacity + gpu.sm_count * (gpu.smem_per_sm + gpu.registers_per_sm)).as_double();
  double moved = 0;
  Dtype dtype = Dtype::bf16;
  for (const Op& op : graph.ops()) {
    if (op.kind != OpKind::gemm) continue;
    dtype = graph.tensor(op.reads[0].tensor).dtype;
    const double element = static_cast<double>(size_of(dtype));
    moved += flops(graph, op).as_double() / std::sqrt(on_chip / element) * element;
  }
  limits.capacity_bound = std::max(limits.compulsory, Bytes(static_cast<std::int64_t>(moved)));
  limits.time = std::max(flops(graph) / tensor_peak(gpu, dtype),
                         limits.compulsory / gpu.hbm_bandwidth_sustained);
  return limits;
}

}  // namespace fuseline
