#include "sim/executor/online_softmax.h"
#include "model/primitives/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fuseline::executor {

namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void scale(float* values, std::int64_t count, float factor) {
  for (std::int64_t c = 0; c < count; ++c) values[c] *= factor;
}

}  // namespace

void OnlineSoftmax::begin(std::int64_t queries, std::int64_t width) {
  largest_.assign(at(queries), kNothing);
  sums_.assign(at(queries), 0.0F);
  result_.resize(queries, width);
  std::fill(result_.data.begin(), result_.data.end(), 0.0F);
}

void OnlineSoftmax::add(Matrix& scores, const std::vector<float>& values,
                        const std::vector<SeenKeys>& seen) {
  for (std::int64_t q = 0; q < scores.rows; ++q) {
    float* s = scores.row(q);
    const SeenKeys keys = seen[at(q)];
    if (keys.end <= keys.begin) {
      std::fill_n(s, scores.cols, 0.0F);
      continue;
    }
    const float top = std::max(
        largest_[at(q)], reductions::max.of_numbers.value(s + keys.begin, keys.end - keys.begin));
    const float factor = largest_[at(q)] != kNothing ? std::exp(largest_[at(q)] - top) : 1.0F;
    largest_[at(q)] = top;
    std::fill_n(s, keys.begin, 0.0F);
    for (std::int64_t k = keys.begin; k < keys.end; ++k) s[k] = std::exp(s[k] - top);
    std::fill(s + keys.end, s + scores.cols, 0.0F);
    sums_[at(q)] = sums_[at(q)] * factor +
                   reductions::sum.of_numbers.value(s + keys.begin, keys.end - keys.begin);
    if (factor != 1.0F) scale(result_.row(q), result_.cols, factor);
  }
  multiply({scores.data.data(), scores.cols, false}, {values.data(), result_.cols, true},
           scores.rows, result_.cols, scores.cols, 1.0F, result_.data.data(), result_.cols);
}

void OnlineSoftmax::join(const OnlineSoftmax& other) {
  for (std::int64_t q = 0; q < result_.rows; ++q) {
    const float top = std::max(largest_[at(q)], other.largest_[at(q)]);
    if (top == kNothing) continue;
    const float mine = std::exp(largest_[at(q)] - top);
    const float theirs = std::exp(other.largest_[at(q)] - top);
    largest_[at(q)] = top;
    sums_[at(q)] = sums_[at(q)] * mine + other.sums_[at(q)] * theirs;
    for (std::int64_t c = 0; c < result_.cols; ++c)
      result_.row(q)[c] = result_.row(q)[c] * mine + other.result_.row(q)[c] * theirs;
  }
}

void OnlineSoftmax::finish(Matrix& result, bool normalise) const {
  result.resize(result_.rows, result_.cols);
  for (std::int64_t q = 0; q < result.rows; ++q) {
    const float sum = normalise ? sums_[at(q)] : 1.0F;
    for (std::int64_t c = 0; c < result.cols; ++c) result.row(q)[c] = result_.row(q)[c] / sum;
  }
}

std::vector<float> OnlineSoftmax::log_sum_exp() const {
  std::vector<float> result(sums_.size());
  for (std::size_t q = 0; q < sums_.size(); ++q) result[q] = largest_[q] + std::log(sums_[q]);
  return result;
}

}  // namespace fuseline::executor
