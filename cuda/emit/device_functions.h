// The functions and types of cuda/kernels/epilogue that stand for a primitive.
#pragma once

#include "model/program.h"

namespace fuseline::cuda {

// "add", "gelu_tanh"
const char* function_of(MapFn fn);

// "Sum", "SumSquares", "Max"; of two numbers at once, the first. InternalError: mean, which no tile
// can give.
const char* reducer_of(ReduceFn fn);

}  // namespace fuseline::cuda
