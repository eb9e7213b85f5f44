#include "cuda/emit/device_functions.h"

#include "base/error.h"

namespace fuseline::cuda {

const char* function_of(MapFn fn) {
  switch (fn) {
    case MapFn::add:
      return "add";
    case MapFn::sub:
      return "sub";
    case MapFn::mul:
      return "mul";
    case MapFn::scale_by_constant:
      return "scale_by_constant";
    case MapFn::add_constant:
      return "add_constant";
    case MapFn::square:
      return "square";
    case MapFn::rsqrt:
      return "rsqrt";
    case MapFn::silu:
      return "silu";
    case MapFn::sigmoid:
      return "sigmoid";
    case MapFn::gelu_tanh:
      return "gelu_tanh";
    case MapFn::negate:
      return "negate";
    case MapFn::copy:
      return "copy";
    case MapFn::exp:
      return "exp";
    case MapFn::reciprocal:
      return "reciprocal";
    case MapFn::log:
      return "log";
    case MapFn::gelu_tanh_slope:
      return "gelu_tanh_slope";
  }
  FUSELINE_ASSERT(false, "unknown map");
}

const char* reducer_of(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum:
    case ReduceFn::sum_and_squares:
      return "Sum";
    case ReduceFn::sum_squares:
      return "SumSquares";
    case ReduceFn::max:
      return "Max";
    case ReduceFn::mean:
      break;
  }
  FUSELINE_ASSERT(false, "a tile has no such reduction");
}

}  // namespace fuseline::cuda
