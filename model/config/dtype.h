// The types in which elements of tensors lie in memory.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace fuseline {

// e4m3, e2m1, e8m0: floating point of so many bits of exponent and of mantissa. e8m0 has no sign:
// it is a power of two. int8 and int4 are whole numbers with a sign.
enum class Dtype : std::uint8_t { bf16, fp16, fp32, e4m3, int8, int4, e2m1, e8m0 };

ElementSize size_of(Dtype type);
const char* name_of(Dtype type);

// The largest relative error of rounding to the type; of whole numbers, of the largest one.
double unit_roundoff(Dtype type);

}  // namespace fuseline
