// What a reduction is: everything that is known of it, said once in its own file of reductions/.
// Programs hold a handle on it; nothing else lists reductions.
#pragma once

#include <cstdint>
#include <string>

#include "base/described.h"
#include "base/error.h"

namespace fuseline {

struct ReduceFunction {
  Fact<const char*> name;     // in a program's text and in the name of a kernel
  Fact<const char*> reducer;  // the struct of cuda/kernels/epilogue/reduce.cuh
  // Of `count` numbers, in fp32 and in a fixed order (model/primitives/running_sums.h).
  Fact<float (*)(const float* values, std::int64_t count)> of_numbers;
  // Of what two parts of them gave.
  Fact<float (*)(float, float)> joined;
  // Divided by the number of columns: only whole rows have it.
  bool divided = false;
  // A second reduction of the same numbers; of tiles only.
  const ReduceFunction* also = nullptr;
  // The text of the reducer, which kernels that use it bring along; null: cuda/kernels has it.
  const char* device = nullptr;
};
using ReduceFn = Handle<ReduceFunction>;

// In a program's text: "sum_squares", "sum, sum_squares".
std::string name_of(ReduceFn fn);

// The reducer that a tile's reduction uses, brought along if need be. Asserts that tiles have it.
template <class Code>
const char* reducer_for(Code& code, ReduceFn fn) {
  FUSELINE_ASSERT(!fn->divided, "a tile has no such reduction");
  if (fn->device != nullptr) code.device_function(fn->device);
  return fn->reducer;
}

}  // namespace fuseline
