#include "sim/kernels/stream_costs.h"

#include <algorithm>

#include "model/operators/attributes.h"

namespace fuseline {
namespace {

// Generic framework kernels compute an offset per element and operand: dearer where operands lie in
// different orders (the sum that ends RoPE) and where elements change width.
double strided_factor(const Graph& graph, const Kernel& kernel, const StreamConstants& c) {
  if (has_cost(graph, kernel, {StreamCost::two_layouts})) return c.strided_add_factor;
  for (const OpId id : kernel.ops) {
    for (const Operand& o : graph.op(id).reads) {
      if (graph.tensor(o.tensor).dtype == Dtype::fp32) return c.strided_convert_factor;
    }
    for (const Operand& o : graph.op(id).writes) {
      if (graph.tensor(o.tensor).dtype == Dtype::fp32) return c.strided_convert_factor;
    }
  }
  return 1.0;
}

}  // namespace

bool has_cost(const Graph& graph, const Kernel& kernel, std::initializer_list<StreamCost> costs) {
  return std::any_of(kernel.ops.begin(), kernel.ops.end(), [&](OpId id) {
    return std::find(costs.begin(), costs.end(), graph.op(id).kind->stream) != costs.end();
  });
}

double instructions_of(Implementation implementation, const StreamConstants& c) {
  switch (implementation) {
    case Implementation::strided:
      return c.strided_instructions;
    case Implementation::transposing:
      return c.transposing_instructions;
    case Implementation::concat:
      return c.concat_instructions;
    case Implementation::scatter_add:
      return c.scatter_add_instructions;
    default:
      return c.pointwise_instructions;
  }
}

double instructions_of(const Graph& graph, const Kernel& kernel, const StreamConstants& c) {
  const bool layer_norm =
      has_cost(graph, kernel, {StreamCost::welford, StreamCost::deferred_welford});
  double count = c.pointwise_instructions;
  switch (kernel.implementation) {
    case Implementation::strided:
      return c.strided_instructions * strided_factor(graph, kernel, c);
    case Implementation::transposing:
    case Implementation::concat:
    case Implementation::scatter_add:
      return instructions_of(kernel.implementation, c);
    case Implementation::generated_reduction:
      count = layer_norm ? c.generated_norm_instructions : c.row_instructions;
      break;
    case Implementation::row_norm:
      count = layer_norm ? c.layer_norm_instructions : c.row_instructions;
      break;
    case Implementation::resident_row:
      count = c.resident_row_instructions;
      break;
    default:
      break;
  }
  if (has_cost(graph, kernel, {StreamCost::softmax}) &&
      kernel.implementation != Implementation::resident_row)
    count = c.softmax_instructions;
  if (has_cost(graph, kernel, {StreamCost::rotation})) count += c.rope_instructions;
  if (has_cost(graph, kernel, {StreamCost::exponential})) count += c.gelu_instructions;
  if (has_cost(graph, kernel, {StreamCost::error_function})) count += c.erf_instructions;
  if (has_cost(graph, kernel, {StreamCost::error_slope})) count += c.erf_slope_instructions;
  return count;
}

Residency residency(Implementation implementation, const StreamConstants& c) {
  switch (implementation) {
    case Implementation::vectorized:
    case Implementation::generated_pointwise:
      return {c.block_threads, c.vector_thread_elements};
    case Implementation::generated_reduction:
      return {c.generated_row_threads, c.vector_thread_elements};
    case Implementation::resident_row:
      return {c.resident_row_threads, c.vector_thread_elements};
    default:
      return {c.block_threads, c.thread_elements};
  }
}

}  // namespace fuseline
