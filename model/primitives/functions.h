// The functions that maps, pair maps and reductions apply, and their names.
#pragma once

#include <cstdint>

namespace fuseline {

enum class MapFn : std::uint8_t {
  add,
  sub,
  mul,
  scale_by_constant,
  add_constant,
  square,
  rsqrt,
  silu,
  sigmoid,
  gelu_tanh,
  negate,
  copy,
  exp,
  reciprocal,
  log,
  gelu_tanh_slope,  // the derivative of gelu_tanh
};
// Maps over adjacent column pairs of the accumulator: rope 2→2, swiglu 2→1, swiglu_backward 1→2.
enum class PairFn : std::uint8_t { rope, rope_inverse, swiglu, swiglu_backward };
// sum_and_squares (tile reductions): two numbers, the sum and the sum of squares (LayerNorm).
enum class ReduceFn : std::uint8_t { sum, sum_squares, max, mean, sum_and_squares };

// In a program's text: "sum_squares".
const char* name_of(ReduceFn fn);
// The reducer of cuda/kernels: "Sum", "SumSquares", "Max"; of two numbers at once, the first.
// InternalError: mean, which no tile can give.
const char* reducer_of(ReduceFn fn);

}  // namespace fuseline
