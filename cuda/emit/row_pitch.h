// How a tensor's rows lie in GPU memory: the runner places them so, and kernels are written for it.
#pragma once

#include "model/graph.h"

namespace fuseline::cuda {

// Bytes from one row to the next: rows start at multiples of 16 bytes, but for the numbers of a
// vector of one column, which lie side by side.
std::int64_t row_pitch(const Tensor& tensor);

}  // namespace fuseline::cuda
