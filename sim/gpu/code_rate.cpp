#include "sim/gpu/code_rate.h"

#include "base/error.h"

namespace fuseline {

FlopsPerSecond code_rate(const Gpu& gpu, Dtype codes) {
  const bool floating = codes == Dtype::e4m3;
  FUSELINE_ASSERT(floating || codes == Dtype::int8, name_of(codes));
  const FlopsPerSecond rate = floating ? gpu.tensor_fp8 : gpu.tensor_int8;
  if (rate.value() > 0) return rate;
  const char* const field = floating ? "tensor_fp8_dense" : "tensor_int8_dense";
  throw InputError({.field = "activations",
                    .value = floating ? "fp8" : "int8",
                    .message = "the file of the GPU " + gpu.name +
                               " gives its tensor cores no such "
                               "rate (" +
                               field + ")",
                    .allowed = "a GPU that multiplies such codes, or activations of the workload's "
                               "type"});
}

}  // namespace fuseline
