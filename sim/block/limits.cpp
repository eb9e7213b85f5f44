#include "sim/block/limits.h"

#include <algorithm>
#include <cmath>

#include "model/operators/operator_table.h"
#include "sim/gpu/code_rate.h"

namespace fuseline {

FlopsPerSecond tensor_peak(const Gpu& gpu, Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return gpu.tensor_bf16;
    case Dtype::fp16:
      return gpu.tensor_fp16;
    case Dtype::e4m3:
    case Dtype::int8:
      return code_rate(gpu, dtype);
    default:
      break;
  }
  return gpu.tensor_bf16 * gpu.constants.gemm.tf32_fraction;
}

FlopsPerSecond boosted_tensor_peak(const Gpu& gpu, Dtype dtype) {
  const FlopsPerSecond quoted = tensor_peak(gpu, dtype);
  if (gpu.tensor_clock.value() <= 0 || gpu.sm_clock <= gpu.tensor_clock) return quoted;
  return quoted * (gpu.sm_clock / gpu.tensor_clock);
}

BytesPerSecond fastest_hbm(const Gpu& gpu) {
  return gpu.hbm_bandwidth_sustained *
         std::max({1.0, gpu.constants.attention.hbm_fraction, gpu.constants.stream.hbm_fraction,
                   gpu.constants.gemm.hbm_fraction});
}

Limits limits_of(const Graph& graph, const Gpu& gpu) {
  Limits limits;
  const CompulsoryBytes bytes = compulsory_bytes(graph);
  limits.compulsory = bytes.read + bytes.written;
  limits.own = limits.compulsory - bytes.shared_read - bytes.shared_written;
  // What L2 keeps of the inputs when a block starts, and of the outputs when their memory is
  // written again, are two contents at two times.
  const auto beyond_l2 = [&](Bytes shared) { return std::max(Bytes(), shared - gpu.l2_capacity); };
  limits.least =
      limits.own - bytes.foldable + beyond_l2(bytes.shared_read) + beyond_l2(bytes.shared_written);

  const double on_chip =
      (gpu.l2_capacity + gpu.sm_count * (gpu.smem_per_sm + gpu.registers_per_sm)).as_double();
  double moved = 0;
  Dtype dtype = Dtype::bf16;
  Seconds of_codes;  // products of codes, which tensor cores multiply at another rate
  Flops codes;
  for (const Op& op : graph.ops()) {
    if (!is_gemm(op)) continue;
    const Dtype multiplied = graph.tensor(op.reads[0].tensor).dtype;
    if (gemm_shape(op).activation.quantised()) {
      of_codes += flops(graph, op) / boosted_tensor_peak(gpu, multiplied);
      codes += flops(graph, op);
    } else {
      dtype = multiplied;
    }
    // Words of the narrower operand: on chip there is room for most of them, and each that moves
    // is at least so wide.
    const ElementSize weight = size_of(graph.tensor(op.reads[1].tensor).dtype);
    const double element = std::min(size_of(multiplied), weight).as_double();
    const double words = on_chip / element;
    const double at_least = flops(graph, op).as_double() / std::sqrt(words) - 2 * words;
    moved += std::max(0.0, at_least) * element;
  }
  limits.capacity_bound = std::max(limits.least, Bytes(static_cast<std::int64_t>(moved)));
  limits.time = std::max((flops(graph) - codes) / boosted_tensor_peak(gpu, dtype) + of_codes,
                         limits.least / fastest_hbm(gpu));
  return limits;
}

}  // namespace fuseline
