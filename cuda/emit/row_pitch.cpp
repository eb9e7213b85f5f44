#include "cuda/emit/row_pitch.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kRowAlignment = 16;

}  // namespace

std::int64_t row_pitch(const Tensor& tensor) {
  const std::int64_t bytes = tensor.cols * size_of(tensor.dtype);
  if (tensor.cols == 1) return bytes;
  return (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

}  // namespace fuseline::cuda
